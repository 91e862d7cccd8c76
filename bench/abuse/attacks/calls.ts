import { setTimeout as sleep } from "node:timers/promises";
import type { BaseLike } from "../../../test/support/base-like/base-like.ts";
import { deployEscrow } from "../../../test/support/escrow/contract.ts";
import { GOOD, verify } from "../../../test/support/escrow/delivery.ts";
import { randomNonce } from "../../../test/support/payments/authorization.ts";
import { post, send } from "../../../test/support/payments/requests.ts";
import { altered, type Signed } from "../../../test/support/payments/signing.ts";
import { ARBITER_KEY } from "../../../test/support/service/accounts.ts";
import { binary } from "../../../test/support/service/database.ts";
import { type Attack, atMost, type Goal } from "../row.ts";
import { openService, type Service } from "../service.ts";

/** Longer than anything is cached. */
const COLD_MS = 2_600;
const CALLERS = 100;
const CALLS_A_STATUS = 8;
/** It is read once in two seconds, and a slow machine needs a few for so many callers. */
const STATUS_READS = 4;
const DAY_OF_BLOCKS = 43_200;
const FINAL_MINUTES = 20;

const row = (id: string, what: string, goal: Goal) => ({ id: `calls-${id}`, line: 6, what: `calls: ${what}`, goal });

/** What requests cost the provider, by their kind and the age of their row. */
export const CALLS: Attack = {
  rows: [
    row("unpaid", "an unpaid request", atMost(0)),
    row("unsigned", "a payment without a signature", atMost(1)),
    row("wrong", "a wrongly signed payment", atMost(1)),
    row("paid", "a fresh payment, submitted and answered", atMost(15)),
    row("replay", "the replay of an answered payment", atMost(0)),
    row("day", "the retry of an unsettled payment a day old", atMost(4)),
    row("month", "the retry of an unsettled payment a month old", atMost(4)),
    row("escrow", "/escrow/verify of a random id", atMost(4)),
    row("status", `/status, ${CALLERS} callers at once`, atMost(STATUS_READS * CALLS_A_STATUS)),
  ],
  async run(ground) {
    const { address } = await deployEscrow(ground.base.chain);
    const service = await openService(ground, { env: { ESCROW_ADDRESSES: address, ARBITER_PRIVATE_KEY: ARBITER_KEY } });
    const count = counter(ground.base);
    try {
      return { ...(await ofPayments(service, count)), ...(await ofReads(service, count)) };
    } finally {
      await service.stop();
    }
  },
};

type Count = (ask: () => Promise<unknown>) => Promise<number>;

const counter =
  (base: BaseLike): Count =>
  async (ask) => {
    await sleep(COLD_MS);
    base.calls.reset();
    await ask();
    return base.calls.total();
  };

async function ofPayments(service: Service, count: Count) {
  const signed = await service.sign(await service.newPayer());
  const stranger = await service.sign(await service.newPayer(0n));
  const wrong = { ...stranger, signature: altered(stranger.signature) };
  const unsigned = { ...(await service.sign(await service.newPayer(0n))), signature: "0x00" } as const;
  const ofPayment = {
    "calls-unpaid": await count(() => post(`${service.url}/test/basic`)),
    "calls-unsigned": await count(() => service.pay(unsigned)),
    "calls-wrong": await count(() => service.pay(wrong)),
    "calls-paid": await count(() => expectStatus(service.pay(signed), 200)),
    "calls-replay": await count(() => expectStatus(service.pay(signed), 200)),
  };
  const [day, month] = [await lost(service), await lost(service)];
  await service.base.pass(FINAL_MINUTES);
  return {
    ...ofPayment,
    "calls-day": await count(await retryOf(service, day, 1)),
    "calls-month": await count(await retryOf(service, month, 30)),
  };
}

async function ofReads(service: Service, count: Count) {
  const random = { payment_id: randomNonce(), response: GOOD, signature: `0x${"11".repeat(65)}` };
  const status = () => send(`${service.url}/status`, { headers: { accept: "application/json" } });
  return {
    "calls-escrow": await count(() => verify(service, random)),
    "calls-status": await count(() => Promise.all(Array.from({ length: CALLERS }, status))),
  };
}

/** A payment whose transaction the node acknowledged and dropped. */
async function lost(service: Service): Promise<Signed> {
  const signed = await service.sign(await service.newPayer(), { validBefore: service.base.unixNow() + 120n });
  service.base.pool.fate("swallowed");
  await expectStatus(service.pay(signed), 503);
  return signed;
}

/** Its retry, as if it had arrived so many days ago. */
async function retryOf(service: Service, signed: Signed, days: number): Promise<() => Promise<unknown>> {
  const { nonce } = signed.authorization;
  const blocks = days * DAY_OF_BLOCKS;
  await service.owner.query("UPDATE payment SET head_block = head_block - $2 WHERE nonce = $1", [
    binary(nonce),
    blocks,
  ]);
  await service.age(days * 86_400);
  return () => expectStatus(service.pay(signed), 402);
}

async function expectStatus(answering: ReturnType<Service["pay"]>, wanted: number): Promise<void> {
  const { status, text } = await answering;
  if (status !== wanted) throw new Error(`${status} instead of ${wanted}: ${text.slice(0, 300)}`);
}
