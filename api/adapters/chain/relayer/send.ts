import { keccak256, TransactionReceiptNotFoundError } from "viem";
import type { Hex } from "../../../kernel/wallet.ts";
import { inTransaction } from "../../postgres/connection.ts";
import { broadcast } from "./broadcast.ts";
import { assertAffordable } from "./conditions.ts";
import { type Fees, offerIn } from "./fees.ts";
import type { Carried } from "./ledger.ts";
import type { Sender } from "./sender.ts";

export interface RelayRequest {
  readonly to: Hex;
  readonly data: Hex;
  /** The most gas it may use; a call that needs more is not sent. */
  readonly gas: bigint;
  /** 32 bytes that are unique for what the transaction is for. */
  readonly purpose: Hex;
}

/** The transaction was mined and did not do what it was for. It is never sent again. */
const revertedIn = (transaction: Hex): Error =>
  new Error(`transaction ${transaction} was mined and reverted; nothing is sent a second time for its purpose`);

/** Allocates, signs, stores, then broadcasts; what was sent for the purpose before is not sent a second time. */
export async function send(sender: Sender, request: RelayRequest): Promise<Hex> {
  const before = await sender.ledger.carried(sender.pool, request.purpose);
  if (before !== null) {
    const known = "lost" in before ? await minedAfterAll(sender, before.lost) : hashOf(before);
    if (known !== null) return known;
  }
  const stored = await store(sender, request, await termsOf(sender, request));
  if (!("raw" in stored)) return hashOf(stored);
  await broadcast(sender, stored.raw);
  return keccak256(stored.raw);
}

type Live = Exclude<Carried, { readonly lost: unknown }>;

function hashOf(carried: Live): Hex {
  if ("reverted" in carried) throw revertedIn(carried.reverted);
  return carried.hash;
}

/** A node with gaps may have missed a transaction when its nonce was over. */
async function minedAfterAll({ client }: Sender, hashes: readonly Hex[]): Promise<Hex | null> {
  for (const hash of hashes) {
    const receipt = await client.getTransactionReceipt({ hash }).catch(notFound);
    if (receipt?.status === "reverted") throw revertedIn(hash);
    if (receipt !== null) return hash;
  }
  return null;
}

function notFound(error: unknown): null {
  if (error instanceof TransactionReceiptNotFoundError) return null;
  throw error;
}

interface Terms {
  readonly gas: bigint;
  readonly fees: Fees;
}

/** Simulated as it will be mined: by this sender, at these fees. */
async function termsOf({ client, address, conditions }: Sender, { to, data, gas: most }: RelayRequest): Promise<Terms> {
  const { market } = await conditions();
  const fees = offerIn(market);
  const estimate = await client.estimateGas({ account: address, to, data, gas: most, ...fees });
  const roomy = (estimate * 13n) / 10n;
  return { fees, gas: roomy < most ? roomy : most };
}

/** The signed transaction, or what another process has sent for the purpose meanwhile. */
async function store(
  sender: Sender,
  request: RelayRequest,
  { gas, fees }: Terms,
): Promise<{ readonly raw: Hex } | Live> {
  const { pool, ledger } = sender;
  const { to, data, purpose } = request;
  const conditions = await sender.conditions();
  return inTransaction(pool, async (db) => {
    await ledger.lock(db);
    const carried = await ledger.carried(db, purpose);
    if (carried !== null && !("lost" in carried)) return carried;
    const { wei: reserved } = await ledger.reserved(db, conditions.count);
    assertAffordable(sender, conditions, { wei: gas * fees.maxFeePerGas, reserved });
    const nonce = await ledger.nextNonce(db, conditions.count);
    const raw = await sender.sign({ to, data }, { nonce, gas, fees });
    const signed = { hash: keccak256(raw), raw: sender.close(raw, nonce) };
    await ledger.insert(db, { ...signed, nonce, purpose, to, gas, maxFee: fees.maxFeePerGas });
    return { raw };
  });
}
