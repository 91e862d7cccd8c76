import type pg from "pg";
import type { PublicClient, TransactionReceipt } from "viem";
import type { SigningAccount } from "../chain/accounts.ts";
import { createBatcher } from "../chain/batcher.ts";
import { ask, type Question } from "../db/connection.ts";
import type { Seal } from "../db/seal.ts";
import type { PaymentKey } from "../http/route.ts";
import type { MinedTransaction } from "../metrics/meter.ts";
import type { Address, Hex } from "../wallet.ts";
import { type Fees, type ReadConditions, readConditions } from "./fees.ts";
import { type Carried, carriedBy } from "./form.ts";
import { type Because, createLine, type Lane, type Line, type NextBlock, type Shares, watchBlocks } from "./places.ts";
import { createLedger, type Ledger, sealContext } from "./store.ts";

/** Purposes that are looked up at the same time share a statement. */
const LOOK_UPS = { most: 100, underWay: 4, waitMs: 5 };

/** The relayer's view of the payments in its transactions. */
export interface Cargo {
  /** Asks whether each payment is still to be submitted, by the run that holds this lease. */
  areHeld(leases: readonly Lease[]): Question<readonly boolean[]>;
  /** Asks whether the payer of each has paid here before; false without a payment. */
  haveProved(leases: readonly (Lease | null)[]): Question<readonly boolean[]>;
  /** Returns the positions, counted from 1, of the calls that failed in a mined transaction. */
  failedPlaces(receipt: TransactionReceipt): readonly number[];
  /** Returns the purposes that a mined transaction served according to its events; null if its calls show that. */
  servedBy(receipt: TransactionReceipt): readonly Hex[] | null;
}

export interface RelayerParts {
  readonly cargo: Cargo;
  readonly pool: pg.Pool;
  readonly client: PublicClient;
  readonly chainId: number;
  readonly account: SigningAccount;
  /** Calldata contains payers' signatures, so a transaction is stored encrypted. */
  readonly seal: Seal;
  readonly log: { warn(facts: object, message: string): void };
  /** Counts transactions; null if metrics are off. */
  readonly counter: Counter | null;
  /** The most unmined transactions of each lane. */
  readonly shares: Shares;
  /** The most that the account may lose to failed payments in a day, in wei; null for no limit. */
  readonly mostLostWei: bigint | null;
}

/** Counts one key's transactions, whichever process finds them. */
export interface Counter {
  relayed(mined: MinedTransaction): void;
  replaced(): void;
  turnedAway(because: Because): void;
}

/** The parts, plus values derived from the account. */
export interface Sender extends RelayerParts {
  readonly address: Address;
  readonly ledger: Ledger;
  /** Returns the transaction sent for a purpose. */
  readonly carried: (purpose: Hex) => Promise<Carried | undefined>;
  readonly conditions: ReadConditions;
  readonly nextBlock: NextBlock;
  /**
   * The lines in which single payments wait for a place. Outcomes and statements do not wait, because their jobs run
   * again.
   */
  readonly lines: { readonly [lane in Lane]?: Line };
  readonly sign: (call: { to: Hex; data: Hex }, terms: { nonce: number; gas: bigint; fees: Fees }) => Promise<Hex>;
  /** Encrypts a transaction for storage. */
  readonly close: (raw: Hex, nonce: number) => Buffer;
  readonly open: (stored: { readonly raw: Buffer; readonly nonce: string }) => Hex;
}

export function createSender(parts: RelayerParts): Sender {
  const { chainId, client, pool, account, seal } = parts;
  const { address } = account;
  const context = (nonce: number | string) => sealContext({ chainId, address }, nonce);
  const nextBlock = watchBlocks(client);
  return {
    ...parts,
    address,
    ledger: createLedger(pool, { chainId, address }),
    carried: createBatcher(async (purposes: readonly Hex[]) => {
      const found = await ask(pool, carriedBy(chainId, purposes));
      return purposes.map((purpose) => found.get(purpose));
    }, LOOK_UPS),
    conditions: readConditions(client, address),
    nextBlock,
    lines: { batch: createLine("batch", nextBlock), alone: createLine("alone", nextBlock) },
    sign: (call, { nonce, gas, fees }) =>
      account.signTransaction({ type: "eip1559", chainId, nonce, gas, ...fees, ...call, value: 0n }),
    close: (raw, nonce) => seal.seal(raw, context(nonce)),
    open: ({ raw, nonce }) => seal.open(raw, context(nonce)),
  };
}

/** A run's lease on a payment. While its row has this token, no other run works on it. */
export interface Lease {
  readonly key: PaymentKey;
  readonly token: string;
}
