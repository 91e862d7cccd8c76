import type pg from "pg";
import type { Result } from "./certificate.ts";
import type { VerificationReader } from "./certificate-store.ts";
import type { CertificateSummary } from "./certificate-summary.ts";
import type { Product } from "./products.ts";
import type { ActivityIndex } from "../platform/index/activity.ts";
import { aboutWallet } from "./about-wallet.ts";
import { bytes } from "../platform/db/connection.ts";

interface Columns {
  id: string | null;
  product: Product;
  test_version: number;
  result: Result;
  level: string;
  issued_at: Date;
  valid_until: Date;
  reversed_at: Date | null;
}

const NEWEST = 100;
const COLUMNS = "c.id, c.product, c.test_version, c.result, c.level, c.issued_at, c.valid_until, m.at AS reversed_at";
/** A payment is reversed at most once; a certificate may rest on two. */
const FROM = `certificate c LEFT JOIN settlement_mark m
  ON m.payer = c.wallet AND m.nonce IN (c.nonce, c.also_nonce, c.third_nonce) AND m.chain = c.chain AND m.asset = c.asset AND m.kind = 'reversed'`;
const newest = (wallet: string) =>
  `SELECT ${COLUMNS} FROM ${FROM} WHERE c.wallet = ${wallet} ORDER BY c.issued_at DESC LIMIT ${NEWEST + 1}`;
/**
 * Of a wallet with more, the newest that are about it, and the failures that still count: they must not disappear behind a
 * hundred newer certificates.
 */
const CHOSEN = `(SELECT ${COLUMNS} FROM ${FROM} WHERE c.wallet = $1 AND ${aboutWallet("c")} ORDER BY c.issued_at DESC LIMIT ${NEWEST})
  UNION ALL (SELECT ${COLUMNS} FROM ${FROM} WHERE c.wallet = $1 AND c.result = 'fail' AND ${aboutWallet("c")} AND c.valid_until > $2)`;

/**
 * A wallet's certificates and activity: one round trip while the index answers, certificates alone while it does not.
 */
export function createVerificationReader(pool: pg.Pool, index: ActivityIndex): VerificationReader {
  const chosen = async (payer: Buffer, now: Date): Promise<Columns[]> =>
    (await pool.query<Columns>({ name: "chosen", text: CHOSEN, values: [payer, now] })).rows;
  return {
    async facts(wallet, now) {
      const payer = bytes(wallet);
      const companion = { name: "certificates", query: newest("$4"), values: [payer] };
      const beside = await index.activityBeside<Columns>(wallet, now, companion);
      const rows =
        beside?.rows ?? (await pool.query<Columns>({ name: "standing", text: newest("$1"), values: [payer] })).rows;
      // The newest of all says whether any certificate is on file, even one that is not about the wallet.
      const certificates = rows.length <= NEWEST ? rows : [...rows.slice(0, 1), ...(await chosen(payer, now))];
      return { wallet, activity: beside?.activity ?? null, certificates: summaries(certificates) };
    },
  };
}

/** Each once, newest first: a join promises no order. */
function summaries(rows: readonly Columns[]): CertificateSummary[] {
  const found = new Map<string, CertificateSummary>();
  for (const row of rows) {
    if (row.id === null || found.has(row.id)) continue;
    found.set(row.id, {
      id: row.id,
      product: row.product,
      testVersion: row.test_version,
      result: row.result,
      level: row.level,
      issuedAt: row.issued_at,
      validUntil: row.valid_until,
      reversedAt: row.reversed_at,
    });
  }
  return [...found.values()].sort((a, b) => b.issuedAt.getTime() - a.issuedAt.getTime());
}
