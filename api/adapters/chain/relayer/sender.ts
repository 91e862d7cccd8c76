import { createHash } from "node:crypto";
import type pg from "pg";
import type { PublicClient } from "viem";
import { NETWORKS, networkOfChain } from "../../../kernel/networks.ts";
import type { Address, Hex } from "../../../kernel/wallet.ts";
import type { MinedTransaction } from "../../../operations/meter.ts";
import { createSeal } from "../../postgres/seal.ts";
import { createAccount } from "../account.ts";
import { type ReadConditions, readConditions } from "./conditions.ts";
import type { Fees } from "./fees.ts";
import { createLedger, type Ledger } from "./ledger.ts";
import { createMembers } from "./members.ts";
import { type NextBlock, watchBlocks } from "./next-block.ts";

export interface RelayerParts {
  readonly pool: pg.Pool;
  readonly client: PublicClient;
  readonly chainId: number;
  readonly privateKey: Hex;
  readonly log: { warn(facts: object, message: string): void };
  /** Hears what happens to transactions; null if nobody counts. */
  readonly counter: Counter | null;
}

/** What is counted of one key's transactions, whichever of its processes finds it. */
export interface Counter {
  relayed(mined: MinedTransaction): void;
  replaced(): void;
}

/** The parts, plus what is derived from the key. */
export interface Sender extends RelayerParts {
  readonly address: Address;
  readonly ledger: Ledger;
  readonly members: ReturnType<typeof createMembers>;
  readonly conditions: ReadConditions;
  readonly nextBlock: NextBlock;
  readonly sign: (call: { to: Hex; data: Hex }, terms: { nonce: number; gas: bigint; fees: Fees }) => Hex;
  /**
   * Calldata holds payers' signatures: a stored transaction is encrypted, with a key that only the holder of the
   * relayer's has.
   */
  readonly close: (raw: Hex, nonce: number) => Buffer;
  readonly open: (stored: { readonly raw: Buffer; readonly nonce: string }) => Hex;
}

export function createSender(parts: RelayerParts): Sender {
  const { chainId, client, pool, privateKey } = parts;
  const { address, signTransaction } = createAccount(privateKey);
  const seal = createSeal(createHash("sha256").update(`relayed transactions|${privateKey}`).digest());
  const place = (nonce: number | string) => `${chainId}|${address}|${nonce}`;
  return {
    ...parts,
    address,
    ledger: createLedger(pool, { chainId, address }),
    members: createMembers(chainId),
    conditions: readConditions(client, address),
    nextBlock: watchBlocks(client, NETWORKS[networkOfChain(chainId)].blockSeconds * 1_000),
    sign: (call, { nonce, gas, fees }) =>
      signTransaction({ type: "eip1559", chainId, nonce, gas, ...fees, ...call, value: 0n }),
    close: (raw, nonce) => seal.seal(raw, place(nonce)),
    open: ({ raw, nonce }) => seal.open(raw, place(nonce)),
  };
}
