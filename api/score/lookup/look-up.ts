import type { ChainReading, PayeeFact } from "../../../packages/verifier/src/score/facts.ts";
import { otherFunders } from "../../../packages/verifier/src/score/funders.ts";
import { BudgetSpent, type LookupBudget } from "../../platform/db/lookup-budget.ts";
import { networkOf } from "../../platform/http/request.ts";
import type { NotYet } from "../../platform/http/route.ts";
import type { Address } from "../../platform/wallet.ts";
import type { InflowReader } from "./chain.ts";
import {
  type Examined,
  examine,
  type Known,
  type LookedPayee,
  type Needed,
  needsLookup,
  type Payees,
} from "./examine.ts";
import type { PayeesIndex } from "./index-store.ts";
import type { Basis, KnownBlock, PayeesReading, Progress, ReadPlan, Snapshot } from "./inflows.ts";
import type { LookupStore } from "./store.ts";

interface LookUpParts {
  readonly index: PayeesIndex;
  readonly store: LookupStore;
  readonly reader: InflowReader;
  readonly budget: LookupBudget;
  /** The service's addresses, in lowercase. */
  readonly ignored: readonly Address[];
  readonly now: () => Date;
  readonly newToken: () => string;
  readonly sleep: (ms: number) => Promise<void>;
  /** Repeats the work at an interval until the returned function is called. */
  readonly every: (ms: number, work: () => void) => () => void;
  readonly failed: (error: unknown) => void;
}

export interface Snapshots {
  /** Whether the snapshots contain everything that the scores depend on. */
  readonly isComplete: boolean;
  readonly snapshots: ReadonlyMap<Address, Snapshot>;
}

/** A look-up is repeated after this time. */
const FRESH_MS = 3_600_000;
/** A look-up made for a 402 still serves the payment that follows, and payments that are resolved much later. */
const USABLE_MS = 86_400_000;
const WAIT_MS = 8_000;
const POLL_MS = 250;
const CLAIM_SECONDS = 30;
/** Less than a claim lasts, because one answer from a node may take longer. */
const RENEW_MS = 10_000;
/** Each round gets one step closer to the 16 payers of a payee. */
const MOST_ROUNDS = 20;
/** In one process: across all clients, and for clients of one network. */
const MOST_AT_ONCE = 8;
const MOST_OF_A_NETWORK = 4;

export type LookUps = ReturnType<typeof createLookUps>;

export function createLookUps(parts: LookUpParts) {
  const { index, store, ignored, now, sleep, failed } = parts;
  const running = new Map<string, { readonly client: string; readonly work: Promise<NotYet | null> }>();
  const basisOf = ({ firstBlock }: PayeesReading): Basis => ({ firstBlock, ignored });
  const isOlder = ({ made_at }: Snapshot, ms: number) => now().getTime() - made_at.getTime() > ms;

  /** Returns the wallets whose look-up is missing or older than `ms`, and the other look-ups. */
  const lacking = async (reading: PayeesReading, ms: number) => {
    const open = reading.wallets.filter(needsLookup);
    // A look-up that the score no longer depends on is left out, even if it has not been deleted yet.
    const made = await store.snapshots(
      basisOf(reading),
      open.map(({ wallet }) => wallet),
    );
    const snapshots = new Map(made.filter((one) => !isOlder(one, ms)).map((snapshot) => [snapshot.wallet, snapshot]));
    return { missing: open.filter(({ wallet }) => !snapshots.has(wallet)), snapshots };
  };

  const start = (job: Job): Promise<NotYet | null> => {
    const key = job.missing
      .map(({ wallet }) => wallet)
      .sort()
      .join();
    const known = running.get(key);
    // Another client's budget may run out before this client's.
    if (known !== undefined)
      return known.client === job.client
        ? known.work
        : known.work.then((notYet) => (notYet?.isSpent === true ? start(job) : notYet));
    const network = networkOf(job.client);
    const neighbors = [...running.values()].filter(({ client }) => networkOf(client) === network);
    if (running.size >= MOST_AT_ONCE || neighbors.length >= MOST_OF_A_NETWORK) return Promise.resolve(BUSY);
    const work = lookUp(parts, job)
      .catch((error: unknown) => {
        if (error instanceof BudgetSpent) return spent(error);
        failed(error);
        return AWAY;
      })
      .finally(() => running.delete(key));
    running.set(key, { client: job.client, work });
    return work;
  };

  return {
    /**
     * Looks up the facts missing from these wallets' scores, on behalf of a client. Returns null once nothing is missing. It
     * never waits long: a longer look-up continues, and the next call finds its result.
     */
    async prepare(wallets: readonly Address[], client: string): Promise<NotYet | null> {
      const reading = await index.payees(wallets, now());
      if (reading === null) return NO_INDEX;
      if (reading.scope !== "selective") return null;
      const { missing } = await lacking(reading, FRESH_MS);
      if (missing.length === 0) return null;
      const work = start({ basis: basisOf(reading), asOfBlock: reading.asOfBlock, missing, client });
      return Promise.race([work, sleep(WAIT_MS).then(() => WORKING)]);
    },
    /** Returns the results of look-ups without asking a node, or null while the index is unavailable. */
    async found(wallets: readonly Address[]): Promise<Snapshots | null> {
      const reading = await index.payees(wallets, now());
      if (reading === null) return null;
      if (reading.scope !== "selective") return { isComplete: true, snapshots: new Map() };
      const { missing, snapshots } = await lacking(reading, USABLE_MS);
      return { isComplete: missing.length === 0, snapshots };
    },
  };
}

const notYet = (detail: string, retryAfterSeconds: number): NotYet => ({ detail, retryAfterSeconds, isSpent: false });
const NO_INDEX = notYet("Scores are not sold while the index of on-chain payments is down or behind.", 5);
const BUSY = notYet("Other wallets are currently being looked up on the chain.", 5);
const AWAY = notYet("The funders of this wallet and of its payees' payers cannot currently be looked up.", 10);
const WORKING = notYet("The funders of this wallet and of its payees' payers are being looked up on the chain.", 5);
const NO_FINAL = notYet("No authorized payment is final yet, so the funders of a wallet cannot be looked up.", 60);

const spent = ({ whose, retryAfterSeconds }: BudgetSpent): NotYet => ({
  detail:
    whose === "client"
      ? "Your address has used its look-ups on the chain for this hour. Scores that need none are still sold."
      : "All look-ups on the chain for this hour are used. Scores that need none are still sold.",
  retryAfterSeconds,
  isSpent: whose === "client",
});

interface Job {
  readonly basis: Basis;
  readonly asOfBlock: number;
  readonly missing: readonly Payees[];
  readonly client: string;
}

async function lookUp(parts: LookUpParts, { basis, asOfBlock, missing, client }: Job): Promise<NotYet | null> {
  const { reader, store, budget } = parts;
  const spend = () => budget.spend(client);
  let end = await reader.final(basis, spend);
  if (end === null) return NO_FINAL;
  const known = new Map<Address, Known>();
  const asked = new Map<Address, number>();
  const scored = new Set(missing.map(({ wallet }) => wallet));
  for (let round = 0; round < MOST_ROUNDS; round += 1) {
    if (end.block > asOfBlock) return NO_INDEX;
    const through = end.block;
    const results = missing.map((one) => ({ wallet: one.wallet, result: examine(one, known, through) }));
    const needed = new Map<Address, number>();
    for (const { result } of results)
      for (const [wallet, block] of "needed" in result ? result.needed : [])
        needed.set(wallet, Math.max(block, needed.get(wallet) ?? 0));
    if (needed.size === 0) {
      for (const { wallet, result } of results)
        await store.keep(basis, {
          ...(result as Examined),
          ...{ wallet, made_at: parts.now(), block: through, block_hash: end.hash, as_of_block: asOfBlock },
        });
      return null;
    }
    for (const [wallet, block] of needed) {
      if (block <= (asked.get(wallet) ?? -1)) throw new Error(`the inflows of ${wallet} were read but not stored`);
      asked.set(wallet, block);
    }
    for (const progress of await inflowsOf(parts, needed, { basis, end, spend })) {
      known.set(progress.wallet, { inflows: progress.inflows, through: progress.through?.block ?? -1 });
      end = laterOf(end, scored.has(progress.wallet) ? progress.through : null);
    }
  }
  throw new Error("a look-up did not finish");
}

/** Totals are known only as of the last block read, so a look-up cannot end at an earlier one. */
const laterOf = (end: KnownBlock, through: KnownBlock | null): KnownBlock =>
  through !== null && through.block > end.block ? through : end;

interface Reach extends Pick<ReadPlan, "end" | "spend"> {
  readonly basis: Basis;
}

/** Returns the needed inflows from the store, from nodes, or from another process that is reading them. */
async function inflowsOf(parts: LookUpParts, needed: Needed, reach: Reach): Promise<readonly Progress[]> {
  const { store, reader, sleep, newToken } = parts;
  const { basis, end } = reach;
  const wallets = [...needed.keys()];
  const isThere = ({ wallet, through, inflows }: Progress) =>
    inflows.fullAt !== null || (through !== null && through.block >= (needed.get(wallet) ?? end.block));
  for (;;) {
    const known = await store.known(basis, wallets);
    const there = known.filter(isThere);
    const done = new Set(there.map(({ wallet }) => wallet));
    const open = wallets.filter((wallet) => !done.has(wallet));
    if (open.length === 0) return there;
    const by = { token: newToken(), seconds: CLAIM_SECONDS };
    const mine = await store.claim(basis, open, by);
    if (mine.length === 0) {
      await sleep(POLL_MS);
      continue;
    }
    const claimed = mine.map(({ wallet }) => wallet);
    let renewed: Promise<unknown> = Promise.resolve();
    const stopRenewal = parts.every(RENEW_MS, () => {
      renewed = store.claim(basis, claimed, by).catch(parts.failed);
    });
    try {
      const save = (progress: readonly Progress[]) => store.save(basis, progress, by);
      await reader.read(basis, { from: mine.filter((one) => !isThere(one)), end, spend: reach.spend, save });
    } finally {
      stopRenewal();
      await renewed;
      await store.release(basis, claimed, by);
    }
  }
}

const larger = (a: string, b: string): string => (BigInt(a) > BigInt(b) ? a : b);

/** Adds a look-up to the index's data on a wallet. A payee newer than the look-up stays unknown. */
export function withLookup(wallet: Address, reading: ChainReading, snapshot: Snapshot | undefined): ChainReading {
  const { chain } = reading;
  if (chain.scope !== "selective" || snapshot === undefined) return reading;
  const { largestFunder, block, block_hash, as_of_block } = snapshot;
  const payees = chain.payees.map((payee) => {
    const looked = snapshot.payees[payee.payee];
    return looked === undefined ? payee : known(payee, looked, { wallet, largestFunder });
  });
  return {
    ...reading,
    chain: { ...chain, lookup: { block, block_hash, as_of_block }, largest_funder: largestFunder, payees },
  };
}

interface Looking {
  readonly wallet: Address;
  readonly largestFunder: Address | null;
}

function known(payee: PayeeFact, looked: LookedPayee, { wallet, largestFunder }: Looking): PayeeFact {
  const { funder_at_floor, payers } = looked;
  const funded = payers.filter(({ funder }) => funder !== null).length;
  return {
    ...payee,
    // The index knows the payee's authorized payments, which may be newer.
    returned: larger(payee.returned, looked.returned),
    funder_at_floor,
    payers,
    other_funders: otherFunders(payers, { wallet, payee: payee.payee, funders: [largestFunder, funder_at_floor] }),
    unfunded_payers: Math.max(payers.length, payee.unfunded_payers) - funded,
  };
}
