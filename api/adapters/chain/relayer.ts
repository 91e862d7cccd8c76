import { createHash } from "node:crypto";
import type pg from "pg";
import { keccak256, type PublicClient, parseTransaction, type TransactionReceipt } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import type { Hex } from "../../kernel/wallet.ts";
import { bytes, hex, inTransaction } from "../postgres/connection.ts";
import { createSeal } from "../postgres/seal.ts";
import { discreet, withoutSecrets } from "./rpc-errors.ts";

const STUCK_AFTER = "30 seconds";
/**
 * Longer than any wait for the lock. The chain's count is read before that wait, so it may miss anything sent since,
 * even if it is already over.
 */
const COUNTED_WITHIN = "1 minute";
const RESEND_AFTER_MS = 4_000;
const FEE_CACHE_MS = 2_000;

export interface RelayRequest {
  readonly to: Hex;
  readonly data: Hex;
}

export interface RelayerParts {
  readonly pool: pg.Pool;
  readonly client: PublicClient;
  readonly chainId: number;
  readonly privateKey: Hex;
  readonly log: { warn(facts: object, message: string): void };
}

/**
 * Sends transactions from one key, from any number of processes at once. Nonces are allocated under a PostgreSQL lock;
 * each transaction is signed, stored, then broadcast. `tend` resends what the chain lacks and replaces what is stuck.
 */
export interface Relayer {
  readonly address: Hex;
  /**
   * Returns the hash of the broadcast transaction. Rejects before signing if the call would revert or gas cannot be
   * paid.
   */
  send(request: RelayRequest): Promise<Hex>;
  /** Returns the receipt of the transaction, or of its replacement. Rejects after `timeoutMs`. */
  waitFor(hash: Hex, timeoutMs: number): Promise<TransactionReceipt>;
  tend(): Promise<void>;
}

interface Stored {
  id: string;
  nonce: string;
  hashes: Buffer[];
  raw: Buffer;
  stuck: boolean;
  age_ms: number;
}

/** The parts, plus what is derived from the key. */
interface Sender extends RelayerParts {
  readonly address: Hex;
  readonly sign: (request: RelayRequest, terms: { nonce: number; gas: bigint; fee: Fees }) => Promise<Hex>;
  /**
   * Calldata holds payers' signatures: a stored transaction is encrypted, with a key that only the holder of the
   * relayer's has.
   */
  readonly close: (raw: Hex, nonce: number) => Buffer;
  readonly open: (stored: Pick<Stored, "raw" | "nonce">) => Hex;
}

interface Fees {
  readonly maxFeePerGas: bigint;
  readonly maxPriorityFeePerGas: bigint;
}

export function createRelayer(parts: RelayerParts): Relayer {
  const { client, pool, chainId, log } = parts;
  const sender = createSender(parts);
  const { address } = sender;
  const fees = cachedFees(client);

  const send = async (request: RelayRequest): Promise<Hex> => {
    const [estimate, count, balance, fee] = await Promise.all([
      client.estimateGas({ account: address, ...request }),
      client.getTransactionCount({ address }),
      client.getBalance({ address }),
      fees(),
    ]);
    const gas = (estimate * 13n) / 10n;
    if (balance < gas * fee.maxFeePerGas) throw new Error(`the relayer ${address} has no gas: ${balance} wei`);
    const raw = await inTransaction(pool, async (db) => {
      const nonce = await nextNonce(db, { chainId, address }, count);
      const signed = await sender.sign(request, { nonce, gas, fee });
      await db.query({
        name: "relay-insert",
        text: "INSERT INTO relay (chain, sender, nonce, hashes, raw, request) VALUES ($1, $2, $3, $4, $5, $6)",
        values: [
          chainId,
          bytes(address),
          nonce,
          [bytes(keccak256(signed))],
          sender.close(signed, nonce),
          JSON.stringify({ to: request.to }),
        ],
      });
      return signed;
    });
    await broadcast(parts, raw);
    return keccak256(raw);
  };

  /** The facilitator's library swallows the cause, so log it here. */
  const said = (sending: Promise<Hex>): Promise<Hex> =>
    sending.catch((error: unknown) => {
      log.warn({ err: error }, "a transaction could not be sent");
      throw error;
    });

  return {
    address,
    send: (request) => said(discreet(send)(request)),
    waitFor: (hash, timeoutMs) => waitFor(parts, hash, timeoutMs),
    tend: discreet(() => tend(sender)),
  };
}

function createSender(parts: RelayerParts): Sender {
  const { chainId, privateKey } = parts;
  const account = privateKeyToAccount(privateKey);
  const address = account.address.toLowerCase() as Hex;
  const seal = createSeal(createHash("sha256").update(`relayed transactions|${privateKey}`).digest());
  const place = (nonce: number | string) => `${chainId}|${address}|${nonce}`;
  return {
    ...parts,
    address,
    sign: (request, { nonce, gas, fee }) =>
      account.signTransaction({ type: "eip1559", chainId, nonce, gas, ...fee, ...request, value: 0n }),
    close: (raw, nonce) => seal.seal(raw, place(nonce)),
    open: ({ raw, nonce }) => seal.open(raw, place(nonce)),
  };
}

/**
 * The lowest nonce that neither the chain nor a transaction of ours has taken; serialised per key and chain until
 * commit.
 */
async function nextNonce(
  db: pg.PoolClient,
  { chainId, address }: Pick<Sender, "chainId" | "address">,
  count: number,
): Promise<number> {
  await db.query({
    name: "relay-lock",
    text: "SELECT pg_advisory_xact_lock($1, hashtext($2))",
    values: [chainId, address],
  });
  const { rows } = await db.query<{ nonce: string }>({
    name: "relay-taken",
    // Two parts, each with its own index: the table keeps every transaction ever sent.
    text: `SELECT nonce FROM relay WHERE chain = $1 AND sender = $2 AND nonce >= $3 AND state = 'sent'
      UNION SELECT nonce FROM (SELECT chain, sender, nonce, sent_at FROM relay ORDER BY id DESC LIMIT 256) AS newest
        WHERE chain = $1 AND sender = $2 AND nonce >= $3 AND sent_at > now() - interval '${COUNTED_WITHIN}'
      ORDER BY nonce`,
    values: [chainId, bytes(address), count],
  });
  let next = count;
  for (const row of rows) {
    if (Number(row.nonce) !== next) break;
    next++;
  }
  return next;
}

/** A rejected broadcast is not a failure: the transaction is stored, and `tend` resends it while its nonce is open. */
async function broadcast({ client, log }: RelayerParts, raw: Hex): Promise<void> {
  try {
    await client.sendRawTransaction({ serializedTransaction: raw });
  } catch (error) {
    if (!/already known|already imported|nonce too low/i.test(String(error)))
      log.warn(
        { err: withoutSecrets(error), hash: keccak256(raw) },
        "a transaction could not be broadcast; it will be retried",
      );
  }
}

async function waitFor({ pool, client }: RelayerParts, hash: Hex, timeoutMs: number): Promise<TransactionReceipt> {
  const deadline = Date.now() + timeoutMs;
  let hashes = [hash];
  for (let pause = 20; ; pause = Math.min(pause * 2, 500)) {
    for (const candidate of hashes) {
      const receipt = await client.getTransactionReceipt({ hash: candidate }).catch(() => null);
      if (receipt !== null) return receipt;
    }
    if (Date.now() > deadline) throw new Error(`transaction ${hash} was not mined within ${timeoutMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, pause));
    if (pause === 500) {
      const { rows } = await pool.query<{ hashes: Buffer[] }>(
        "SELECT hashes FROM relay WHERE hashes @> ARRAY[$1::bytea]",
        [bytes(hash)],
      );
      hashes = rows[0]?.hashes.map(hex) ?? hashes;
    }
  }
}

function cachedFees(client: PublicClient): () => Promise<Fees> {
  let cached: { at: number; fees: Promise<Fees> } | null = null;
  return () => {
    if (cached !== null && Date.now() - cached.at < FEE_CACHE_MS) return cached.fees;
    const fees = client
      .estimateFeesPerGas()
      .then(({ maxFeePerGas, maxPriorityFeePerGas }) => ({ maxFeePerGas: maxFeePerGas * 2n, maxPriorityFeePerGas }));
    const entry = { at: Date.now(), fees };
    cached = entry;
    fees.catch(() => {
      if (cached === entry) cached = null;
    });
    return fees;
  };
}

async function tend(sender: Sender): Promise<void> {
  const { pool, client, chainId, address } = sender;
  const { rows } = await pool.query<Stored>({
    name: "relay-open",
    text: `SELECT id, nonce, hashes, raw, sent_at < now() - interval '${STUCK_AFTER}' AS stuck, extract(epoch FROM now() - sent_at) * 1000 AS age_ms
      FROM relay WHERE chain = $1 AND sender = $2 AND state = 'sent' ORDER BY nonce LIMIT 256`,
    values: [chainId, bytes(address)],
  });
  if (rows.length === 0) return;
  const [mined, final] = await Promise.all([
    client.getTransactionCount({ address }),
    // A node that has just loaded its chain may not know a final block yet; until it does, nothing is final.
    client.getTransactionCount({ address, blockTag: "finalized" }).catch(() => 0),
  ]);
  for (const row of rows) {
    const nonce = Number(row.nonce);
    if (nonce < final) await finish(sender, row);
    else if (nonce >= mined && row.stuck) await replace(sender, row);
    else if (nonce >= mined && row.age_ms > RESEND_AFTER_MS) await broadcast(sender, sender.open(row));
  }
}

/** A final nonce is over: either our transaction was mined, or one sent from elsewhere with the same key took it. */
async function finish({ pool, client, log }: RelayerParts, row: Stored): Promise<void> {
  const receipts = await Promise.all(
    row.hashes.map((h) => client.getTransactionReceipt({ hash: hex(h) }).catch(() => null)),
  );
  const ours = receipts.some((receipt) => receipt !== null);
  if (!ours) log.warn({ nonce: row.nonce }, "another sender used a nonce of the relayer's key");
  await pool.query("UPDATE relay SET state = $2 WHERE id = $1 AND state = 'sent'", [row.id, ours ? "final" : "lost"]);
}

/** The same call and nonce with a 25% higher fee (nodes require 10%), stored before it is sent. */
async function replace(sender: Sender, row: Stored): Promise<void> {
  const old = parseTransaction(sender.open(row));
  const market = await sender.client.estimateFeesPerGas();
  const raise = (was: bigint | undefined, now: bigint) => {
    const raised = ((was ?? 0n) * 5n) / 4n + 1n;
    return raised > now ? raised : now;
  };
  const fee = {
    maxFeePerGas: raise(old.maxFeePerGas, market.maxFeePerGas),
    maxPriorityFeePerGas: raise(old.maxPriorityFeePerGas, market.maxPriorityFeePerGas),
  };
  const nonce = Number(row.nonce);
  const call = { to: old.to ?? "0x", data: old.data ?? "0x" } as const;
  const raw = await sender.sign(call, { nonce, gas: old.gas ?? 200_000n, fee });
  const { rowCount } = await sender.pool.query(
    "UPDATE relay SET raw = $3, hashes = hashes || $4::bytea, sent_at = now() WHERE id = $1 AND state = 'sent' AND raw = $2",
    [row.id, row.raw, sender.close(raw, nonce), bytes(keccak256(raw))],
  );
  if (rowCount === 1) await broadcast(sender, raw);
}
