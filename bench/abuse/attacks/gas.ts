import { setTimeout as sleep } from "node:timers/promises";
import type { LocalAccount } from "viem";
import type { Signed } from "../../../test/support/payments/signing.ts";
import type { Ground } from "../ground.ts";
import { recordSent, type Sent } from "../recorder.ts";
import { type Attack, atMost } from "../row.ts";
import { openService, type Service } from "../service.ts";
import { CLEAR, drainingWallet, FLAG, SET } from "../wallets.ts";

const KINDS = ["wallet", "delegate"] as const;
/** An estimate of 11 million gas, and one of less than 200,000. */
const ROUNDS = [180_000, 1];
const SENDS = 4;
const GATHERED_WITHIN_MS = 6_000;
const row = (id: (typeof KINDS)[number], what: string) => ({ id: `gas-${id}`, line: 1, what, goal: atMost(350_000) });

interface Victim {
  readonly kind: (typeof KINDS)[number];
  readonly payer: LocalAccount;
  readonly signed: Signed;
}

/** Wallets that behave until their payment is submitted, and then burn its gas; the same header comes four times. */
export const GAS: Attack = {
  rows: [
    row("wallet", `gas of a failed payment, draining ERC-1271 wallet, header sent ${SENDS} times`),
    row("delegate", `gas of a failed payment, draining EIP-7702 delegate, header sent ${SENDS} times`),
  ],
  async run(ground) {
    const service = await openService(ground);
    const victims: Victim[] = [];
    for (const kind of KINDS) for (const rounds of ROUNDS) victims.push(await deploy(service, kind, rounds));
    const sent = recordSent(ground.base);
    try {
      for (let send = 0; send < SENDS; send++) await sendAll(ground, service, victims);
      const gas = await Promise.all(victims.map((victim) => gasOf(ground, sent, victim)));
      const worst = (kind: string) => Math.max(...gas.filter((_, index) => victims[index]?.kind === kind));
      return { "gas-wallet": worst("wallet"), "gas-delegate": worst("delegate") };
    } finally {
      ground.base.become(null);
      await service.stop();
    }
  },
};

async function deploy(service: Service, kind: Victim["kind"], rounds: number): Promise<Victim> {
  const { client } = service.base.chain;
  const payer = await service.newPayer();
  const wallet = kind === "wallet" ? payer : await service.newPayer(0n);
  await client.setCode({ address: wallet.address, bytecode: drainingWallet(rounds) });
  if (kind === "delegate")
    await client.setCode({ address: payer.address, bytecode: `0xef0100${wallet.address.slice(2)}` });
  return { kind, payer, signed: await service.sign(payer, { validBefore: await hourFrom(service) }) };
}

const hourFrom = async ({ base }: Service): Promise<bigint> => base.unixNow() + 3_600n;

/** Every wallet behaves until all that will be submitted waits for a block; in that block it does not. */
async function sendAll({ base }: Ground, service: Service, victims: readonly Victim[]): Promise<void> {
  const { client } = base.chain;
  const flag = (value: typeof SET | typeof CLEAR) =>
    Promise.all(victims.map(({ payer }) => client.setStorageAt({ address: payer.address, index: FLAG, value })));
  await flag(CLEAR);
  base.halt();
  let answered = 0;
  const answers = victims.map(({ signed }) => service.pay(signed).finally(() => answered++));
  const until = performance.now() + GATHERED_WITHIN_MS;
  while (answered + base.pool.waiting().length < victims.length && performance.now() < until) await sleep(50);
  await flag(SET);
  await base.resume();
  await Promise.all(answers);
}

async function gasOf({ base }: Ground, sent: readonly Sent[], { payer }: Victim): Promise<number> {
  const own = sent.filter(({ data }) => data.includes(payer.address.slice(2).toLowerCase()));
  const used = await Promise.all(
    [...new Set(own.map(({ hash }) => hash))].map((hash) =>
      base.chain.client.getTransactionReceipt({ hash }).then(
        ({ gasUsed }) => Number(gasUsed),
        () => 0,
      ),
    ),
  );
  return used.reduce((sum, gas) => sum + gas, 0);
}
