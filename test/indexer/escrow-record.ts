import type pg from "pg";
import type { Address, Hex } from "viem";
import { expect } from "vitest";
import { createActivityIndex } from "../../api/platform/index/activity.ts";
import { createScoreIndex } from "../../api/score/index-store.ts";
import type { EscrowFacts } from "../../packages/verifier/src/score/facts.ts";
import { devAccount } from "../../scripts/embedded/dev-accounts.ts";
import { USDC_ABI } from "../../scripts/embedded/usdc.ts";
import type { TestChain } from "../support/chain/chain.ts";
import { FEE_RECIPIENT } from "../support/escrow/contract.ts";
import { byVerdict, type Events, lower, MERCHANTS, PAYERS, readEvents } from "./escrow-actor.ts";
import { answerOf, expectActivity } from "./indexed.ts";
import { type Fact, largestFunder, type Own, placeOf, readFacts, type Scope, timeOf } from "./recount.ts";
import { readTables, recountReading, recountTables } from "./score-recount.ts";

/** The index of a chain with escrows, with no limit on its lag. */
export const ESCROW_VIEWS = { viewsSchema: "live", maxLagMs: Number.POSITIVE_INFINITY };

const bare = (address: Address) => address.slice(2).toLowerCase();

export interface Sales {
  readonly escrows: readonly Address[];
  /** The first block of the index. */
  readonly from: number;
  /** Other addresses of the service. */
  readonly own?: Own;
}

type Party = { readonly party: string; readonly block: bigint };

/** Returns whether an address belongs to the service in a block. */
function ownIn({ escrows, own = {} }: Sales): (at: Party) => boolean {
  const always = [FEE_RECIPIENT, ...escrows].map((address) => [bare(address), 0] as const);
  const since = Object.entries(own).map(([address, block]) => [bare(address as Address), block] as const);
  const blocks = new Map([...always, ...since]);
  return ({ party, block }) => block >= (blocks.get(party) ?? Number.POSITIVE_INFINITY);
}

/** Returns the block of a payment's hold, which decides whose payment it is. */
function heldIn(events: Events): (id: Hex) => bigint {
  const blocks = new Map(
    events.flatMap((event) => (event.eventName === "Held" ? [[event.args.id, event.blockNumber]] : [])),
  );
  return (id) => blocks.get(id) ?? 0n;
}

/** Every transfer, hold, and release between two others from a block on, in the chain's order. */
export async function readSales(chain: TestChain, asked: Sales): Promise<readonly Fact[]> {
  const { escrows, from: firstBlock, own } = asked;
  const events = await readEvents(chain, ...escrows);
  const [isOwn, heldAt] = [ownIn(asked), heldIn(events)];
  const madeAt = new Map<Hex, number>();
  for (const event of events) madeAt.set(event.blockHash, await timeOf(chain, event));
  const sales = events.flatMap((event): Fact[] => {
    if (event.eventName !== "Held" && event.eventName !== "Released") return [];
    const { id, payer, receiver, amount: value } = event.args;
    const [from, to, isHold] = [bare(payer), bare(receiver), event.eventName === "Held"];
    if (from === to || [from, to].some((party) => isOwn({ party, block: heldAt(id) }))) return [];
    const [timestampMs, transaction] = [madeAt.get(event.blockHash) ?? 0, event.transactionHash];
    const kind = isHold ? "hold" : "release";
    return [{ kind, id, from, to, value, authorized: isHold, timestampMs, transaction, place: placeOf(event) }];
  });
  const transfers = await readFacts(chain, [FEE_RECIPIENT, ...escrows], own);
  const all = [...transfers, ...sales].toSorted((a, b) => a.place - b.place);
  return all.filter(({ place }) => place >= firstBlock * 10_000);
}

const DAY_MS = 86_400_000;

interface Ledger {
  readonly events: Events;
  readonly facts: readonly Fact[];
  /** The day of each block with an event, counted from 1970. */
  readonly days: ReadonlyMap<bigint, number>;
  readonly sales: Sales;
}

async function readDays(chain: TestChain, events: Events): Promise<Ledger["days"]> {
  const days = events.map(
    async (event) => [event.blockNumber, Math.floor((await timeOf(chain, event)) / DAY_MS)] as const,
  );
  return new Map(await Promise.all(days));
}

type At = { readonly asOf: Date; readonly scope: Scope };

/** The score's facts of a merchant by definition, from the events of all escrows in the chain's order. */
function recountOutcomes({ events, facts, days, sales }: Ledger, merchant: Address, { asOf, scope }: At): EscrowFacts {
  const [isOwn, heldAt] = [ownIn(sales), heldIn(events)];
  const today = Math.floor(asOf.getTime() / DAY_MS);
  const [released, refunded] = (["Released", "Refunded"] as const).map((name) => {
    const counted = events.flatMap((event) => {
      if (event.eventName !== name || lower(event.args.receiver) !== merchant) return [];
      const { id, payer, amount, record } = event.args;
      if ([payer, merchant].some((one) => isOwn({ party: bare(one), block: heldAt(id) }))) return [];
      const before = facts.filter(({ place }) => place < placeOf(event));
      const [funder, own] = [payer, merchant].map((one) => largestFunder(bare(one), before, scope));
      const isToItself = funder !== null && (funder === merchant || (name === "Released" && funder === own));
      if (isToItself || lower(payer) === merchant || amount < 50_000n) return [];
      if (name === "Refunded" && !byVerdict(record)) return [];
      return [{ buyer: funder ?? "unfunded", day: days.get(event.blockNumber) ?? 0, tx: event.transactionHash }];
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

/**
 * Expects every row, and the index's record of every buyer and merchant, to equal a recount from raw logs, also after
 * days have left the window.
 */
export async function expectRecords(
  chain: TestChain,
  { reader, scope }: { readonly reader: pg.Pool; readonly scope: Scope },
  sales: Sales,
): Promise<void> {
  const [events, facts] = await Promise.all([readEvents(chain, ...sales.escrows), readSales(chain, sales)]);
  expect(await readTables(reader), scope).toEqual(recountTables(facts, scope));
  const scored = createScoreIndex(reader, ESCROW_VIEWS);
  const index = createActivityIndex(reader, ESCROW_VIEWS);
  const met = facts.filter(({ kind }) => kind !== "release");
  const [days, head] = [await readDays(chain, events), await chain.client.getBlock()];
  const own = Object.keys(sales.own ?? {}) as Address[];
  const wallets = [...new Set([...PAYERS.map(({ address }) => address), ...MERCHANTS, ...own].map(lower))];
  for (const later of [0, 88, 89, 91]) {
    const asOf = new Date((Number(head.timestamp) + later * 86_400) * 1000);
    const readings = await answerOf(() => scored.read(wallets, asOf));
    const found = readings?.map(({ chain: { payees, ...rest } }) => ({
      ...rest,
      payees: payees.toSorted((a, b) => (a.payee < b.payee ? -1 : 1)),
    }));
    const expected = wallets.map((wallet) => ({
      ...recountReading(facts, wallet, { asOf, scope }),
      ...{ network: "eip155:8453", scope, first_block: sales.from, lookup: null },
      escrow: recountOutcomes({ events, facts, days, sales }, wallet, { asOf, scope }),
    }));
    expect(found, `${scope}, ${later} days on`).toEqual(expected);
    await expectActivity({ index, scope }, met, { wallets, now: asOf });
  }
}

/** Sends and mines a plain transfer of USDC. */
export async function transfer(
  { client, network }: TestChain,
  { from, to, value }: { readonly from: Address; readonly to: Address; readonly value: bigint },
): Promise<void> {
  const call = { address: network.usdc.address, abi: USDC_ABI, functionName: "transfer", args: [to, value] } as const;
  const hash = await client.writeContract({ ...call, account: from });
  await client.waitForTransactionReceipt({ hash });
}

/** Gives the payers different funders. The first payer is also a merchant. */
export async function fundPayers(chain: TestChain): Promise<void> {
  for (const [from, to] of [[4, 1] as const, [6, 2] as const, [0, 3] as const])
    await transfer(chain, { from: devAccount(from).address, to: devAccount(to).address, value: 1_000_000n });
}
