import { parseAbi } from "viem";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import { broadcast } from "../../../test/support/payments/on-chain.ts";
import { type Attack, atMost, oneOf } from "../row.ts";
import { openService, type Service } from "../service.ts";

const ABI = parseAbi([
  "function transferFrom(address from, address to, uint256 value) returns (bool)",
  "event Transfer(address indexed from, address indexed to, uint256 value)",
]);
const USDC = 1_000_000n;
const PASSES = 3;

/** Anyone can send a decoy nothing in anyone's name; and USDC may refuse to pay one of those who sent it something. */
export const DECOYS: Attack = {
  rows: [
    { id: "decoy-blocked", line: 15, what: "a refused sender stops another one's refund", goal: oneOf("no") },
    { id: "decoy-zero", line: 15, what: "zero-value transfers that we send a bystander", goal: atMost(0) },
  ],
  async run(ground) {
    const service = await openService(ground);
    try {
      return { "decoy-zero": await zeroes(service), "decoy-blocked": await blocked(service) };
    } finally {
      await service.stop();
    }
  },
};

/** Some passes of the job, with everything mined until then final. */
async function giveBack({ base, jobs }: Service): Promise<void> {
  for (let pass = 0; pass < PASSES; pass++) {
    await base.pass(16);
    await jobs.upkeep.refunds.giveBack().catch(() => undefined);
  }
}

async function zeroes(service: Service): Promise<number> {
  const { chain } = service.base;
  const token = { address: chain.network.usdc.address, abi: ABI } as const;
  const [decoy, bystander] = [await newDecoy(service), await service.newPayer(USDC)];
  const fromBlock = await chain.client.getBlockNumber();
  const args = [bystander.address, decoy, 0n] as const;
  await chain.client.writeContract({ account: devAccount(0), ...token, functionName: "transferFrom", args });
  // Only a decoy that holds something is emptied.
  await broadcast(chain, await service.sign(await service.newPayer(USDC), { to: decoy, value: USDC }));
  await giveBack(service);
  const to = bystander.address;
  const sent = await chain.client.getContractEvents({
    ...token,
    eventName: "Transfer",
    args: { from: decoy, to },
    fromBlock,
  });
  return sent.length;
}

async function blocked(service: Service): Promise<"yes" | "no"> {
  const { chain } = service.base;
  const decoy = await newDecoy(service);
  const [refused, other] = [await service.newPayer(USDC), await service.newPayer(USDC)];
  for (const sender of [refused, other]) await broadcast(chain, await service.sign(sender, { to: decoy, value: USDC }));
  await chain.blacklist(refused.address);
  await giveBack(service);
  return (await chain.usdcBalance(other.address)) === USDC ? "no" : "yes";
}

/** The decoy of a new session of the recipient test. */
async function newDecoy(service: Service): Promise<`0x${string}`> {
  const signed = await service.sign(await service.newPayer(), { value: 500_000n });
  const { status, text } = await service.pay(signed, "/test/recipient/start");
  if (status !== 200) throw new Error(`the session was not opened: ${status} ${text.slice(0, 200)}`);
  const { rows } = await service.owner.query<{ decoy: Buffer }>(
    "SELECT decoy FROM test_session ORDER BY started_at DESC LIMIT 1",
  );
  return `0x${rows[0]?.decoy.toString("hex")}`;
}
