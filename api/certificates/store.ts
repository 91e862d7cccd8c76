import type pg from "pg";
import { UNATTRIBUTED_FAILS } from "../../packages/verifier/src/tlog/wallet-log.ts";
import type { EntryReaders } from "../log/index.ts";
import { bytes, hex, type Statement } from "../platform/db/connection.ts";
import type { PaymentKey } from "../platform/http/route.ts";
import type { ActivityIndex } from "../platform/index/activity.ts";
import type { Meter } from "../platform/metrics/meter.ts";
import { NETWORKS, networkOfChain } from "../platform/networks.ts";
import type { Address, Hex } from "../platform/wallet.ts";
import type {
  Certificate,
  CertificateSummary,
  Detected,
  MarkedCertificate,
  Result,
  ShownCertificate,
  WalletFail,
} from "./certificate.ts";
import { issuedCertificate } from "./issue.ts";
import type { Product } from "./products.ts";
import type { VerificationFacts } from "./verification.ts";

const PRODUCTS = UNATTRIBUTED_FAILS.map((product) => `'${product}'`).join(", ");

/** SQL condition that the certificate is about its wallet (`isAboutWallet`). */
export const aboutWallet = (c: string): string => `(${c}.result = 'pass' OR ${c}.product NOT IN (${PRODUCTS}))`;

/**
 * SQL condition that none of the certificate's settlements was reversed. `OFFSET 0` keeps the planner from joining whole
 * tables, because this is a key look-up for one certificate.
 */
export const notReversed = (c: string): string => `NOT EXISTS (SELECT FROM settlement_mark m
  WHERE m.payer = ${c}.wallet AND m.nonce IN (${c}.nonce, ${c}.also_nonce, ${c}.third_nonce) AND m.chain = ${c}.chain AND m.asset = ${c}.asset AND m.kind = 'reversed' OFFSET 0)`;

interface IssuedColumns {
  id: string;
  product: Product;
  test_version: number;
  result: Result;
  level: string;
  wallet: Buffer;
  checks: Record<string, Result>;
  detected: Detected;
  issued_at: Date;
  valid_until: Date;
  chain: number;
  tx: Buffer;
  block_number: string;
  amount: string;
  pay_to: Buffer;
}

interface Marks {
  reversed_at: Date | null;
  fails: readonly { id: string; product: Product; issued_at: string; valid_until: string }[] | null;
}

interface Columns extends IssuedColumns, Marks {
  moved_tx: Buffer | null;
  moved_block: string | null;
  proof: unknown;
}

type ShownColumns = Pick<IssuedColumns, "id" | "product" | "result" | "level" | "issued_at" | "valid_until"> & Marks;

const ISSUED_COLUMNS =
  "c.id, c.product, c.test_version, c.result, c.level, c.wallet, c.checks, c.detected, c.issued_at, c.valid_until, c.chain, c.tx, c.block_number, c.amount, c.pay_to";
/** A settlement that a reorganization moved or removed is marked in a separate table; the newest move counts. */
const MARKS = `LEFT JOIN LATERAL (
    SELECT (array_agg(tx ORDER BY id DESC) FILTER (WHERE kind = 'moved' AND nonce = c.nonce))[1] AS moved_tx,
      (array_agg(block_number ORDER BY id DESC) FILTER (WHERE kind = 'moved' AND nonce = c.nonce))[1] AS moved_block,
      min(at) FILTER (WHERE kind = 'reversed') AS reversed_at
    FROM settlement_mark m
    WHERE m.payer = c.wallet AND m.nonce IN (c.nonce, c.also_nonce, c.third_nonce) AND m.chain = c.chain AND m.asset = c.asset
  ) marks ON true`;
const MOST_FAILS = 20;
/** Selects the wallet's FAILs that end last, which determine whether it is verified. */
const FAILS = `(SELECT json_agg(f) FROM (
      SELECT f.id, f.product, f.issued_at, f.valid_until FROM certificate f
      WHERE f.wallet = c.wallet AND f.result = 'fail' AND ${aboutWallet("f")} AND ${notReversed("f")}
      ORDER BY f.valid_until DESC LIMIT ${MOST_FAILS}) f)`;
const SELECT = `SELECT ${ISSUED_COLUMNS}, marks.*, ${FAILS} AS fails, p.document AS proof FROM certificate c ${MARKS} LEFT JOIN published_proof p ON p.certificate = c.id`;
const SELECT_SHOWN = `SELECT c.id, c.product, c.result, c.level, c.issued_at, c.valid_until, ${FAILS} AS fails, (
    SELECT min(at) FROM settlement_mark m WHERE m.kind = 'reversed' AND m.payer = c.wallet
      AND m.nonce IN (c.nonce, c.also_nonce, c.third_nonce) AND m.chain = c.chain AND m.asset = c.asset
  ) AS reversed_at FROM certificate c`;

export type CertificateStore = ReturnType<typeof createCertificateStore>;

/** Creates the store of certificates, which are permanent: added and read, never changed. */
export function createCertificateStore(pool: pg.Pool) {
  return {
    adding(certificate: Certificate, { payment, also, third }: Grounds): Statement {
      const { settlement } = certificate;
      return {
        text: `INSERT INTO certificate (id, product, test_version, result, level, wallet, checks, detected, issued_at, valid_until, chain, asset, nonce, also_nonce, third_nonce, tx, block_number, amount, pay_to)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)`,
        values: [
          certificate.id,
          certificate.product,
          certificate.testVersion,
          certificate.result,
          certificate.level,
          bytes(certificate.wallet),
          JSON.stringify(certificate.checks),
          JSON.stringify(certificate.detected),
          certificate.issuedAt,
          certificate.validUntil,
          NETWORKS[settlement.network].chainId,
          bytes(payment.asset),
          bytes(payment.nonce),
          also === null ? null : bytes(also),
          third === undefined ? null : bytes(third),
          bytes(settlement.transaction),
          settlement.block,
          settlement.amountAtomic.toString(),
          bytes(settlement.payTo),
        ],
      };
    },
    async get(id: string): Promise<MarkedCertificate | null> {
      const { rows } = await pool.query<Columns>({
        name: "certificate-get",
        text: `${SELECT} WHERE c.id = $1`,
        values: [id],
      });
      return rows[0] ? parse(rows[0]) : null;
    },
    /** Returns the facts that its badge shows, for less of the database's time. */
    async shown(id: string): Promise<ShownCertificate | null> {
      const { rows } = await pool.query<ShownColumns>({
        name: "certificate-shown",
        text: `${SELECT_SHOWN} WHERE c.id = $1`,
        values: [id],
      });
      return rows[0] ? parseShown(rows[0]) : null;
    },
  };
}

function parse(c: Columns): MarkedCertificate {
  const tx = c.moved_tx ?? c.tx;
  const issued = parseIssued({ ...c, tx, block_number: c.moved_block ?? c.block_number });
  return { ...issued, ...parseMarks(c), proof: c.proof ?? null };
}

function parseShown(c: ShownColumns): ShownCertificate {
  const { id, product, result, level, issued_at: issuedAt, valid_until: validUntil } = c;
  return { id, product, result, level, issuedAt, validUntil, ...parseMarks(c) };
}

const parseMarks = ({ reversed_at: reversedAt, fails }: Marks) =>
  fails === null ? { reversedAt } : { reversedAt, walletFails: fails.map(parseFail) };

const parseFail = ({ id, product, issued_at, valid_until }: NonNullable<Columns["fails"]>[number]): WalletFail => ({
  id,
  product,
  issuedAt: new Date(issued_at),
  validUntil: new Date(valid_until),
});

function parseIssued(c: IssuedColumns): Certificate {
  return {
    id: c.id,
    product: c.product,
    testVersion: c.test_version,
    result: c.result,
    level: c.level,
    wallet: hex(c.wallet),
    checks: c.checks,
    detected: c.detected,
    issuedAt: c.issued_at,
    validUntil: c.valid_until,
    settlement: {
      network: networkOfChain(c.chain),
      transaction: hex(c.tx),
      block: Number(c.block_number),
      amountAtomic: BigInt(c.amount),
      payTo: hex(c.pay_to),
    },
  };
}

interface VerificationColumns
  extends Pick<IssuedColumns, "id" | "product" | "test_version" | "result" | "level" | "issued_at" | "valid_until"> {
  reversed_at: Date | null;
}

const NEWEST = 100;
const COLUMNS = "c.id, c.product, c.test_version, c.result, c.level, c.issued_at, c.valid_until, m.at AS reversed_at";
/** A payment is reversed at most once, but a certificate may depend on two. */
const FROM = `certificate c LEFT JOIN settlement_mark m
  ON m.payer = c.wallet AND m.nonce IN (c.nonce, c.also_nonce, c.third_nonce) AND m.chain = c.chain AND m.asset = c.asset AND m.kind = 'reversed'`;
const NEWEST_OF_ALL = `SELECT ${COLUMNS} FROM ${FROM} WHERE c.wallet = $1 ORDER BY c.issued_at DESC LIMIT ${NEWEST + 1}`;
/**
 * For a wallet with more certificates: the newest that are about it, and all failures that still count, so that they
 * cannot disappear behind 100 newer certificates.
 */
const CHOSEN = `(SELECT ${COLUMNS} FROM ${FROM} WHERE c.wallet = $1 AND ${aboutWallet("c")} ORDER BY c.issued_at DESC LIMIT ${NEWEST})
  UNION ALL (SELECT ${COLUMNS} FROM ${FROM} WHERE c.wallet = $1 AND c.result = 'fail' AND ${aboutWallet("c")} AND c.valid_until > $2)`;

export type VerificationReader = ReturnType<typeof createVerificationReader>;

/** Creates the reader of a wallet's certificates and activity, which is null while the index does not respond. */
export function createVerificationReader(pool: pg.Pool, index: ActivityIndex) {
  const read = async (name: string, text: string, values: unknown[]) =>
    (await pool.query<VerificationColumns>({ name, text, values })).rows;
  return {
    async facts(wallet: Address, now: Date): Promise<VerificationFacts> {
      const payer = bytes(wallet);
      const [activity, rows] = await Promise.all([
        index.activity(wallet, now),
        read("newest certificates", NEWEST_OF_ALL, [payer]),
      ]);
      // The newest of all shows whether any certificate is on file, even one that is not about the wallet.
      const certificates =
        rows.length <= NEWEST ? rows : [...rows.slice(0, 1), ...(await read("chosen", CHOSEN, [payer, now]))];
      return { wallet, activity, certificates: summaries(certificates) };
    },
  };
}

/** Removes duplicates and sorts newest first, because a join guarantees no order. */
function summaries(rows: readonly VerificationColumns[]): CertificateSummary[] {
  const found = new Map<string, CertificateSummary>();
  for (const row of rows) {
    if (found.has(row.id)) continue;
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

/** The settled payments that a certificate depends on. If one of them is reversed, so is the certificate. */
export interface Grounds {
  readonly payment: PaymentKey;
  readonly also: Hex | null;
  readonly third?: Hex;
}

/** Wraps the store and counts attempted additions, including transactions lost to a failing database. */
export const countedCertificates = (store: CertificateStore, meter: Meter): CertificateStore => ({
  ...store,
  adding(certificate, grounds) {
    meter.certificate(certificate.product, certificate.result);
    return store.adding(certificate, grounds);
  },
});

const ISSUED = `SELECT ${ISSUED_COLUMNS} FROM certificate c WHERE c.id = ANY($1)`;
const PROOFS = "SELECT certificate, document, published_at FROM published_proof WHERE certificate = ANY($1)";

export const certificateEntries: EntryReaders = {
  async certificate(ask, refs) {
    const { rows } = await ask<IssuedColumns>(ISSUED, [refs]);
    return new Map(
      rows.map((row) => [
        row.id,
        { type: "certificate", members: issuedCertificate(parseIssued(row)), issuedAt: row.issued_at },
      ]),
    );
  },
  async proof(ask, refs) {
    const { rows } = await ask<{ certificate: string; document: unknown; published_at: Date }>(PROOFS, [refs]);
    return new Map(
      rows.map(({ certificate, document, published_at: publishedAt }) => [
        certificate,
        { type: "proof", document, publishedAt },
      ]),
    );
  },
};
