import type pg from "pg";
import { KEY, keyValues, sealContext } from "../../payments/index.ts";
import { hex, inTransaction } from "../../platform/db/connection.ts";
import type { Seal } from "../../platform/db/seal.ts";
import type { PaymentKey } from "../../platform/http/route.ts";
import { networkOfChain } from "../../platform/networks.ts";
import type { WithheldSignature } from "./publish-proofs.ts";

interface Columns {
  chain: number;
  asset: Buffer;
  payer: Buffer;
  nonce: Buffer;
  pay_to: Buffer;
  value: string;
  valid_after: string;
  valid_before: string;
  received_at: Date;
  digest: Buffer;
  encrypted_signature: Buffer;
  location: string;
}

const WITHHELD = "reason = 'bait' AND encrypted_signature IS NOT NULL";

export type ProofStore = ReturnType<typeof createProofStore>;

/**
 * Creates the store of withheld payments' signatures, sealed until they are worthless. Their `location` is the resulting
 * record.
 */
export function createProofStore(pool: pg.Pool, seal: Seal) {
  const keyOf = ({ chain, asset, payer, nonce }: Columns) => ({
    network: networkOfChain(chain),
    asset: hex(asset),
    payer: hex(payer),
    nonce: hex(nonce),
  });
  const certificateOf = ({ location }: Columns): string => location.split("/").at(-1) ?? "";
  const parse = (c: Columns): WithheldSignature => ({
    certificate: certificateOf(c),
    payment: keyOf(c),
    payTo: hex(c.pay_to),
    value: BigInt(c.value),
    validAfter: BigInt(c.valid_after),
    validBefore: BigInt(c.valid_before),
    receivedAt: c.received_at,
    digest: hex(c.digest),
    signature: seal.open(c.encrypted_signature, sealContext(keyOf(c))),
  });
  const sealed = (c: Columns): Sealed => ({
    certificate: certificateOf(c),
    payment: keyOf(c),
    open: () => parse(c),
  });
  const select = async (condition: string, time: bigint, limit: number): Promise<Columns[]> => {
    const text = `SELECT * FROM payment WHERE ${WITHHELD} AND ${condition} ORDER BY valid_before LIMIT $2`;
    return (await pool.query<Columns>(text, [time.toString(), limit])).rows;
  };
  return {
    /**
     * Returns signatures whose `validBefore` is at most `time` (Unix seconds) and that were not postponed, oldest first.
     */
    due: async (time: bigint, limit: number) =>
      (await select("valid_before <= $1 AND next_attempt_at <= now()", time, limit)).map(sealed),
    live: async (time: bigint, limit: number) => (await select("valid_before > $1", time, limit)).map(sealed),
    /** Publishes a proof, if any, and wipes the sealed signature, in one transaction. Repeating it changes nothing. */
    publish: ({ payment, certificate }: WithheldSignature, document: object | null): Promise<void> =>
      inTransaction(pool, async (client) => {
        if (document !== null)
          await client.query(
            "INSERT INTO published_proof (certificate, document) VALUES ($1, $2) ON CONFLICT DO NOTHING",
            [certificate, JSON.stringify(document)],
          );
        await client.query(
          `UPDATE payment SET encrypted_signature = NULL WHERE ${KEY} AND reason = 'bait'`,
          keyValues(payment),
        );
      }),
    async putOff(payment: PaymentKey): Promise<void> {
      const text = `UPDATE payment SET next_attempt_at = now() + interval '1 h' WHERE ${KEY} AND reason = 'bait'`;
      await pool.query(text, keyValues(payment));
    },
  };
}

export interface Sealed {
  readonly certificate: string;
  readonly payment: PaymentKey;
  /** @throws Error if it was sealed with another key */
  readonly open: () => WithheldSignature;
}
