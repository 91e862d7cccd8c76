import { createWriteStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import type { Address, Hex } from "viem";

// A chain of USDC transfers over 90 days. Each block is a pure function of its number, so none is stored.

const DAYS = 90;
/** Empty blocks at the head make every transfer final, because Ponder considers a Base block final 30 blocks later. */
const QUIET_BLOCKS = 40;
/** The number of wallets that pay and are paid most, by Zipf's law. */
const HOT = 200;
const NOBODY: Address = `0x${"0".repeat(40)}`;
/** The service's address. Payments to it count in no history. */
export const SERVICE: Address = `0x${"5e".repeat(20)}`;
/** Amounts in atomic units: dust, the score's boundaries, and prices. They are few enough that sums are often equal. */
const VALUES = [
  ...[0, 1, 999, 1_000, 10_000, 10_000, 49_999, 50_000, 50_000, 100_000, 100_000, 100_000, 250_000, 250_000],
  ...[500_000, 1_000_000, 1_000_000, 2_500_000, 5_000_000, 20_000_000],
];

export interface ChainPlan {
  readonly transfers: number;
  readonly perBlock: number;
  /** Unix time of the head. */
  readonly endsAt: number;
  /** One in this number of transfers is an authorized payment, except mints. Default 5. */
  readonly authorizedEvery?: number;
  /** Default: the value that spreads the chain over 90 days. */
  readonly secondsPerBlock?: number;
  /** Default: no reorganizations. */
  readonly forkOf?: GeneratedChain["forkOf"];
}

export interface GeneratedTransfer {
  readonly transaction: Hex;
  readonly logIndex: number;
  readonly from: Address;
  readonly to: Address;
  readonly value: number;
  /** Whether it was paid by EIP-3009. Then the log before it is its AuthorizationUsed. */
  readonly authorized: boolean;
}

export interface GeneratedChain {
  readonly perBlock: number;
  /** The last block with transfers. The first is block 1. */
  readonly last: number;
  readonly head: number;
  readonly timeOf: (block: number) => number;
  readonly transfersOf: (block: number) => readonly GeneratedTransfer[];
  /** The number of reorganizations before this block was made. */
  readonly forkOf: (block: number) => number;
}

/** Scrambles 32 bits with a bijection. */
const mix = (n: number): number => {
  const once = Math.imul(n ^ (n >>> 16), 0x21f0aaad);
  const twice = Math.imul(once ^ (once >>> 15), 0x735a2d97);
  return (twice ^ (twice >>> 15)) >>> 0;
};

const hex = (n: number, digits: number): string => (n >>> 0).toString(16).padStart(digits, "0");

/** The wallet of this rank. Rank 0 is the largest. */
export const walletAt = (rank: number): Address =>
  `0x${[1, 0x1000003, 0x5bd1e995, 77].map((salt) => hex(mix(rank ^ salt), 8)).join("")}${hex(rank, 8)}`;

export const walletCount = (transfers: number): number => Math.max(2 * HOT, Math.floor(transfers / 5));

const zipf = (n: number): number => Math.min(HOT - 1, Math.floor(HOT ** ((n % 10_000) / 10_000)) - 1);

interface Parties {
  readonly from: Address;
  readonly to: Address;
  readonly dice: number;
}

/**
 * Hot wallets send every tenth transfer. A quarter goes to the largest wallet, a quarter to hot ones, and the rest to
 * one of four neighbors, or from a hot wallet to any wallet.
 */
function parties(block: number, index: number, wallets: number): Parties {
  const dice = mix(mix(block * 8191 + index) + 1);
  const other = mix(dice + 1);
  const small = HOT + (other % (wallets - HOT));
  const isHot = dice % 10 === 0;
  const payer = isHot ? zipf(mix(other)) : small;
  const kind = (dice >>> 8) % 200;
  if (kind === 199) return { from: NOBODY, to: walletAt(payer), dice };
  if (kind === 198) return { from: walletAt(payer), to: SERVICE, dice };
  if (kind === 197) return { from: walletAt(payer), to: walletAt(payer), dice };
  const neighbor = isHot ? small : HOT + ((payer * 31 + (mix(other + 2) % 4)) % (wallets - HOT));
  const payee = kind < 50 ? 0 : kind < 100 ? zipf(mix(other + 1)) : neighbor;
  return { from: walletAt(payer), to: walletAt(payee), dice };
}

/** Generates a chain. Block `n` has `perBlock` transfers, each in its own transaction. */
export function generateChain(plan: ChainPlan): GeneratedChain {
  const { transfers, perBlock, endsAt, authorizedEvery = 5, forkOf = () => 0 } = plan;
  const last = Math.ceil(transfers / perBlock);
  const head = last + QUIET_BLOCKS;
  const seconds = plan.secondsPerBlock ?? Math.max(1, Math.floor((DAYS * 86_400) / head));
  const wallets = walletCount(transfers);
  return {
    perBlock,
    last,
    head,
    forkOf,
    timeOf: (block) => endsAt - (head - block) * seconds,
    transfersOf(block) {
      if (block < 1 || block > last) return [];
      const seed = forkOf(block) === 0 ? block : mix(block ^ mix(forkOf(block)));
      let logIndex = 0;
      return Array.from({ length: perBlock }, (_, index) => {
        const { dice, from, to } = parties(seed, index, wallets);
        const spread = mix(dice + 2);
        const authorized = from !== NOBODY && (dice >>> 16) % authorizedEvery === 0;
        logIndex += authorized ? 2 : 1;
        const transaction: Hex = `0x${hex(dice, 8)}${hex(block, 28)}${hex(index, 28)}`;
        const value = VALUES[spread % VALUES.length] ?? 0;
        return { transaction, logIndex: logIndex - 1, from, to, value, authorized };
      });
    },
  };
}

const HEADER = "block,time,transaction,log_index,from,to,value,authorized\n";

function* csvOf(chain: GeneratedChain, lastBlock: number): Generator<string> {
  yield HEADER;
  for (let block = 1; block <= lastBlock; block += 1) {
    const time = chain.timeOf(block);
    yield chain
      .transfersOf(block)
      .map(
        ({ transaction, logIndex, from, to, value, authorized }) =>
          `${block},${time},${transaction},${logIndex},${from},${to},${value},${authorized}\n`,
      )
      .join("");
  }
}

/** Writes the chain's transfers up to this block to a file for `npm run index:preload`. */
export const writeCsv = (chain: GeneratedChain, file: string, lastBlock = chain.last): Promise<void> =>
  pipeline(csvOf(chain, lastBlock), createWriteStream(file));
