import type pg from "pg";
import type { Address, LocalAccount } from "viem";
import { USDC_ABI } from "../../../scripts/embedded/usdc.ts";
import type { TestChain } from "../chain/chain.ts";
import { broadcast } from "../payments/on-chain.ts";
import { newPayer, signPayment } from "../payments/signing.ts";
import type { TestService } from "../service/service.ts";

/** The time for services whose decoys are watched: the machine's, and what the test has added. */
export interface Clock {
  readonly now: () => Date;
  readonly add: (seconds: number) => void;
}

export function newClock(): Clock {
  let added = 0;
  return {
    now: () => new Date(Date.now() + added * 1000),
    add: (seconds) => {
      added += seconds;
    },
  };
}

/** Sends USDC to a decoy, by its own transaction; mined, not final. */
export async function pay(chain: TestChain, sender: LocalAccount, { to, value }: { to: Address; value: bigint }) {
  const validBefore = (await chain.client.getBlock()).timestamp + 600n;
  return broadcast(chain, await signPayment(sender, { to, value, validBefore }));
}

/** Somebody who has just sent USDC to a decoy, and has none left. */
export async function giver(chain: TestChain, to: Address, value: bigint): Promise<LocalAccount> {
  const sender = await newPayer(chain, value);
  await pay(chain, sender, { to, value });
  return sender;
}

/** What the relayer was made to send, ever. */
export const sentBy = async (owner: pg.Pool): Promise<number> =>
  Number((await owner.query("SELECT count(*) FROM relay")).rows[0].count);

export const giveBack = ({ upkeep }: TestService): Promise<number> => upkeep.refunds.giveBack();

/** Transfers of more than nothing from a decoy, as the chain shows them. */
export async function refundsFrom(chain: TestChain, decoy: Address) {
  const event = USDC_ABI.find((item) => item.type === "event" && item.name === "Transfer");
  const logs = await chain.client.getLogs({
    address: chain.network.usdc.address,
    event: event as Extract<typeof event, { name: "Transfer" }>,
    args: { from: decoy },
    fromBlock: 0n,
  });
  return logs.filter(({ args }) => args.value !== 0n);
}
