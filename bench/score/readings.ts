import pg from "pg";
import { createActivityIndex } from "../../api/adapters/index/activity.ts";
import { createScoreIndex } from "../../api/adapters/index/score.ts";
import { connect } from "../../api/adapters/postgres/connection.ts";
import { createScoreCertificates } from "../../api/adapters/postgres/score-certificates.ts";
import { createScoreExams } from "../../api/adapters/postgres/score-exams.ts";
import { createVerificationReader } from "../../api/adapters/postgres/verification-reader.ts";
import { verificationRecord } from "../../api/certification/verification.ts";
import type { Address } from "../../api/kernel/wallet.ts";
import { SCORE_PRICES } from "../../api/score/products.ts";
import { createScores } from "../../api/score/read-scores.ts";

const BASE_URL = "http://localhost";
/** The index is of full scope. */
const NO_LOOK_UPS = {
  prepare: async () => null,
  found: async () => ({ isComplete: true, snapshots: new Map() }),
};
const VIEWS = { viewsSchema: "live", maxLagMs: Number.POSITIVE_INFINITY };

/**
 * What `GET /verify` and `POST /score` do after routing: the same queries, over one connection, and the same record.
 */
export interface Readings {
  readonly verify: (wallet: Address, now: Date) => Promise<unknown>;
  readonly score: (wallets: readonly Address[], now: Date) => Promise<unknown>;
  /** The PostgreSQL pages that this call's statements touch, from `EXPLAIN (ANALYZE, BUFFERS)` of each. */
  readonly pages: (call: () => Promise<unknown>) => Promise<number>;
  readonly close: () => Promise<void>;
}

type Statement = pg.QueryConfig & { readonly name: string; readonly text: string; readonly values: unknown[] };

export function openReadings(apiUrl: string): Readings {
  const pool = connect(apiUrl, 1);
  let seen: Statement[] = [];
  const query = pool.query.bind(pool) as (statement: Statement) => Promise<pg.QueryResult>;
  const watched = Object.assign(Object.create(pool) as pg.Pool, {
    query: (statement: Statement) => {
      seen.push(statement);
      return query(statement);
    },
  });
  const verification = createVerificationReader(watched, createActivityIndex(watched, VIEWS));
  const [index, certificates] = [createScoreIndex(watched, VIEWS), createScoreCertificates(watched)];
  const exams = createScoreExams(watched);
  return {
    verify: async (wallet, now) =>
      verificationRecord(
        await verification.facts(wallet, now),
        { baseUrl: BASE_URL, scorePrice: SCORE_PRICES.one },
        now,
      ),
    score: (wallets, now) =>
      createScores({ index, lookUps: NO_LOOK_UPS, certificates, exams, baseUrl: BASE_URL, now: () => now }).of(wallets),
    async pages(call) {
      // Cached answers are not requested again, so one call fills the caches and the next shows the rest.
      await call();
      seen = [];
      await call();
      const pages = await Promise.all([...seen].map((statement) => pagesOf(pool, statement)));
      return pages.reduce((sum, some) => sum + some, 0);
    },
    close: () => pool.end(),
  };
}

/** Executed as prepared, so that it uses the generic plan, like the API. */
async function pagesOf(pool: pg.Pool, { name, text, values }: Statement): Promise<number> {
  const literals = values.map((value) => pg.escapeLiteral(literal(value))).join();
  const prepared = pg.escapeIdentifier(`explain ${name}`);
  await pool.query(`prepare ${prepared} as ${text}`);
  const { rows } = await pool.query<{ "QUERY PLAN": [{ Plan: Record<string, number> }] }>(
    `explain (analyze, buffers, format json) execute ${prepared}${values.length > 0 ? `(${literals})` : ""}`,
  );
  await pool.query(`deallocate ${prepared}`);
  const plan = rows[0]?.["QUERY PLAN"][0].Plan;
  return (plan?.["Shared Hit Blocks"] ?? Number.NaN) + (plan?.["Shared Read Blocks"] ?? Number.NaN);
}

function literal(value: unknown): string {
  if (Array.isArray(value)) return `{${value.map((one) => JSON.stringify(literal(one))).join()}}`;
  return Buffer.isBuffer(value) ? `\\x${value.toString("hex")}` : String(value);
}
