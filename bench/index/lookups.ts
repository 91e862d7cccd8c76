import type { Address } from "../../api/kernel/wallet.ts";
import { examine, type Known, type Payee, type Payees } from "../../api/score/lookup/examine.ts";
import { addInflows, type Inflow, NO_INFLOWS } from "../../api/score/lookup/inflows.ts";
import { isBetweenOthers, PAYEE_SLOTS, PAYER_SLOTS, reachesFloor } from "../../indexer/ledger.ts";
import { type GeneratedChain, generateChain, SERVICE } from "./generated-chain.ts";
import { judge } from "./goals.ts";
import { PER_BLOCK } from "./stage.ts";

// How many wallets' inflows the score of a wallet needs: with nothing known, and after many others.

const SCORED = 20_000;
const COLD = 2_000;
const MOST_ROUNDS = 20;
const IGNORED = new Set([SERVICE]);

interface Joined {
  readonly payer: Address;
  readonly payee: Address;
  readonly block: number;
}

/** What an index of scope `selective` would have of this chain, and what its nodes would say. */
function readChain(chain: GeneratedChain) {
  const inflows = new Map<Address, Inflow[]>();
  const paid = new Map<string, bigint>();
  const payees = new Map<Address, Joined[]>();
  const payers = new Map<Address, Joined[]>();
  const add = <T>(lists: Map<Address, T[]>, key: Address, item: T) => {
    const list = lists.get(key);
    if (list === undefined) lists.set(key, [item]);
    else list.push(item);
  };
  for (let block = 1; block <= chain.last; block += 1)
    for (const { from, to, value, authorised } of chain.transfersOf(block)) {
      add(inflows, to, { block, from, value: BigInt(value) });
      if (!authorised || !isBetweenOthers({ from, to, value: BigInt(value) }, (address) => IGNORED.has(address)))
        continue;
      const before = paid.get(from + to) ?? 0n;
      paid.set(from + to, before + BigInt(value));
      if (!reachesFloor(before, BigInt(value))) continue;
      add(payees, from, { payer: from, payee: to, block });
      add(payers, to, { payer: from, payee: to, block });
    }
  const payeeOf = ({ payer, payee, block }: Joined): Payee => {
    const others = payers.get(payee) ?? [];
    const newest = others.slice(-PAYER_SLOTS).reverse();
    return {
      ...{ payee, block, atomic: paid.get(payer + payee) ?? 0n, unpaid: 0n, isInWindow: true },
      otherPayers: others.length - 1,
      payers: newest.filter((one) => one.payer !== payer),
    };
  };
  return {
    through: chain.last,
    wallets: [...payees.keys()],
    payeesOf: (wallet: Address): Payees => ({
      wallet,
      payees: (payees.get(wallet) ?? []).slice(-PAYEE_SLOTS).reverse().map(payeeOf),
    }),
    inflowsOf: (wallet: Address): Known => ({
      through: chain.last,
      inflows: addInflows(NO_INFLOWS, inflows.get(wallet) ?? [], new Set([...IGNORED, wallet])),
    }),
  };
}

/** Looks up what a wallet's score needs. Returns how many wallets that were, and in how many rounds. */
function lookUp(index: ReturnType<typeof readChain>, wallet: Address, known: Map<Address, Known>) {
  const payees = index.payeesOf(wallet);
  let wallets = 0;
  for (let rounds = 0; rounds < MOST_ROUNDS; rounds += 1) {
    const found = examine(payees, known, index.through);
    if (!("needed" in found)) return { wallets, rounds };
    for (const one of found.needed.keys()) known.set(one, index.inflowsOf(one));
    wallets += found.needed.size;
  }
  throw new Error(`the look-up of ${wallet} did not come to an end`);
}

const mean = (numbers: readonly number[]): number => numbers.reduce((sum, n) => sum + n, 0) / numbers.length;
const at = (numbers: readonly number[], share: number): number =>
  numbers.toSorted((a, b) => a - b)[Math.min(numbers.length - 1, Math.floor(share * numbers.length))] ?? 0;

/** Returns whether all goals were met. */
export async function runLookups(transfers: number): Promise<boolean> {
  const chain = generateChain({ transfers, perBlock: PER_BLOCK, endsAt: 1_800_000_000, authorisedEvery: 2 });
  const index = readChain(chain);
  const step = Math.max(1, Math.floor(index.wallets.length / SCORED));
  const scored = index.wallets.filter((_, place) => place % step === 0).slice(0, SCORED);
  const cold = scored
    .filter((_, place) => place % Math.ceil(scored.length / COLD) === 0)
    .map((wallet) => lookUp(index, wallet, new Map()));
  const known = new Map<Address, Known>();
  const warm = scored.map((wallet) => lookUp(index, wallet, known));
  const again = scored.map((wallet) => lookUp(index, wallet, known).wallets);
  for (const [name, some] of Object.entries({ cold, "one after the other": warm })) {
    const wallets = some.map((one) => one.wallets);
    console.log(
      `${name.padEnd(20)} ${some.length} scores: ${mean(wallets).toFixed(1)} wallets a score, p50 ${at(wallets, 0.5)}, p99 ${at(wallets, 0.99)}, most ${at(wallets, 1)}; ${mean(some.map(({ rounds }) => rounds)).toFixed(1)} rounds`,
    );
  }
  return judge([
    {
      name: "wallets looked up for a score, nothing known",
      value: mean(cold.map((one) => one.wallets)),
      limit: 20,
      isFloor: false,
    },
    {
      name: `the same over ${scored.length} wallets`,
      value: mean(warm.map((one) => one.wallets)),
      limit: 4,
      isFloor: false,
    },
    { name: "the same once more", value: mean(again), limit: 0, isFloor: false },
  ]);
}
