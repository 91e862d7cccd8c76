import type pg from "pg";
import type { Address } from "viem";
import { expect } from "vitest";
import { createScoreIndex } from "../../api/adapters/index/score.ts";
import type { EscrowFacts } from "../../packages/verifier/src/score/v3/facts.ts";
import { devAccount } from "../../scripts/embedded/dev-accounts.ts";
import { USDC_ABI } from "../../scripts/embedded/usdc.ts";
import type { TestChain } from "../support/chain/chain.ts";
import { FEE_RECIPIENT } from "../support/escrow/contract.ts";
import { MERCHANTS, PAYERS } from "./escrow-actor.ts";
import { byVerdict, type Events, lower, readEvents } from "./escrow-recount.ts";
import { type Fact, placeOf, readFacts } from "./recount.ts";
import { largestFunder, readTables, recountReading, recountTables } from "./score-recount.ts";

/** The index of a chain with escrows, however far behind. */
export const ESCROW_VIEWS = { viewsSchema: "live", hasEscrows: true, maxLagMs: Number.POSITIVE_INFINITY };

const bare = (address: Address) => address.slice(2).toLowerCase();

export interface Sales {
  readonly escrows: readonly Address[];
  /** The first block of the index. */
  readonly from: number;
}

/** Every transfer, hold and release between two others from a block on, in the chain's order. */
export async function readSales(chain: TestChain, { escrows, from }: Sales): Promise<readonly Fact[]> {
  const events = await readEvents(chain, ...escrows);
  const own = [FEE_RECIPIENT, ...escrows];
  const times = new Map<bigint, number>();
  for (const { blockNumber } of events) {
    if (times.has(blockNumber)) continue;
    times.set(blockNumber, Number((await chain.client.getBlock({ blockNumber })).timestamp) * 1000);
  }
  const ours = own.map(bare);
  const sales = events.flatMap((event): Fact[] => {
    if (event.eventName !== "Held" && event.eventName !== "Released") return [];
    const { id, payer, receiver, amount: value } = event.args;
    const [from, to, isHold] = [bare(payer), bare(receiver), event.eventName === "Held"];
    if (from === to || ours.includes(from) || ours.includes(to)) return [];
    const [timestampMs, transaction] = [times.get(event.blockNumber) ?? 0, event.transactionHash];
    const kind = isHold ? "hold" : "release";
    return [{ kind, id, from, to, value, authorised: isHold, timestampMs, transaction, place: placeOf(event) }];
  });
  const all = [...(await readFacts(chain, own)), ...sales].toSorted((a, b) => a.place - b.place);
  return all.filter(({ place }) => place >= from * 10_000);
}

const DAY_MS = 86_400_000;

interface Ledger {
  readonly events: Events;
  readonly facts: readonly Fact[];
  readonly days: ReadonlyMap<bigint, number>;
}

/** The day of each block with an event, counted from 1970. */
async function readDays({ client }: TestChain, events: Events): Promise<Ledger["days"]> {
  const blocks = [...new Set(events.map(({ blockNumber }) => blockNumber))];
  const days = blocks.map(async (blockNumber) => {
    const { timestamp } = await client.getBlock({ blockNumber });
    return [blockNumber, Math.floor(Number(timestamp) / 86_400)] as const;
  });
  return new Map(await Promise.all(days));
}

/** The score's facts of a merchant by definition, from the events of all escrows in the chain's order. */
function recountOutcomes({ events, facts, days }: Ledger, merchant: Address, asOf: Date): EscrowFacts {
  const today = Math.floor(asOf.getTime() / DAY_MS);
  const [released, refunded] = (["Released", "Refunded"] as const).map((name) => {
    const counted = events.flatMap((event) => {
      if (event.eventName !== name || lower(event.args.receiver) !== merchant) return [];
      const { payer, amount, record } = event.args;
      const before = facts.filter(({ place }) => place < placeOf(event));
      const [funder, own] = [payer, merchant].map((one) => largestFunder(bare(one), before, "full"));
      const isOwn = funder !== null && (funder === merchant || (name === "Released" && funder === own));
      if (isOwn || lower(payer) === merchant || amount < 50_000n) return [];
      if (name === "Refunded" && !byVerdict(record)) return [];
      return [{ buyer: funder ?? "nobody", day: days.get(event.blockNumber) ?? 0, tx: event.transactionHash }];
    });
    const firsts = [...Map.groupBy(counted, ({ buyer, day }) => `${buyer} ${day}`).values()].map(([first]) => first);
    const window = firsts.flatMap((one) => (one && one.day > today - 90 && one.day <= today ? [one] : []));
    const buyers = new Set(window.map(({ buyer }) => buyer)).size;
    return { buyers, days: window.length, tx: window.at(-1)?.tx ?? null };
  });
  return {
    buyers: released?.buyers ?? 0,
    release_days: released?.days ?? 0,
    last_release_tx: released?.tx ?? null,
    refunded_buyers: refunded?.buyers ?? 0,
    refund_days: refunded?.days ?? 0,
    last_refund_tx: refunded?.tx ?? null,
  };
}

/** What the index says of buyers and of merchants is what a recount from raw logs says, also when days leave the window. */
export async function expectRecords(chain: TestChain, reader: pg.Pool, sales: Sales): Promise<void> {
  const [events, facts] = await Promise.all([readEvents(chain, ...sales.escrows), readSales(chain, sales)]);
  expect(await readTables(reader)).toEqual(recountTables(facts, "full"));
  const scored = createScoreIndex(reader, ESCROW_VIEWS);
  const [days, head] = [await readDays(chain, events), await chain.client.getBlock()];
  const wallets = [...new Set([...PAYERS.map(({ address }) => address), ...MERCHANTS].map(lower))];
  for (const later of [0, 88, 89, 91]) {
    const asOf = new Date((Number(head.timestamp) + later * 86_400) * 1000);
    const readings = await scored.read(wallets, asOf);
    const found = readings?.map(({ chain: { payees, ...rest } }) => ({
      ...rest,
      payees: payees.toSorted((a, b) => (a.payee < b.payee ? -1 : 1)),
    }));
    const expected = wallets.map((wallet) => ({
      ...recountReading(facts, wallet, { asOf, scope: "full" }),
      ...{ network: "eip155:8453", scope: "full", first_block: sales.from, lookup: null },
      escrow: recountOutcomes({ events, facts, days }, wallet, asOf),
    }));
    expect(found, `${later} days on`).toEqual(expected);
  }
}

/** A plain transfer of USDC, mined. */
export async function transfer(
  { client, network }: TestChain,
  { from, to, value }: { readonly from: Address; readonly to: Address; readonly value: bigint },
): Promise<void> {
  const call = { address: network.usdc.address, abi: USDC_ABI, functionName: "transfer", args: [to, value] } as const;
  const hash = await client.writeContract({ ...call, account: from });
  await client.waitForTransactionReceipt({ hash });
}

/** Payers with different funders, of which the first is a merchant as well. */
export async function fundPayers(chain: TestChain): Promise<void> {
  for (const [from, to] of [[4, 1] as const, [6, 2] as const, [0, 3] as const])
    await transfer(chain, { from: devAccount(from).address, to: devAccount(to).address, value: 1_000_000n });
}
