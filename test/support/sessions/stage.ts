import pg from "pg";
import { startTestChain, type TestChain, type TestChainPlan } from "../chain/chain.ts";
import { eventually } from "../eventually.ts";
import type { TestDatabase } from "../service/database.ts";
import { startService, type TestService, type TestServicePlan } from "../service/service.ts";

/** Where sessions and payments are stored, and where they settle. */
export interface Ground {
  readonly chain: TestChain;
  /** The owner's connections. */
  readonly owner: pg.Pool;
}

export interface Stage extends Ground {
  readonly service: TestService;
  readonly stop: () => Promise<void>;
}

export async function startStage(
  plan: Omit<TestServicePlan, "chain"> = {},
  chainPlan: TestChainPlan = {},
): Promise<Stage> {
  const chain = await startTestChain(chainPlan);
  const service = await startService({ chain, ...plan });
  const owner = ownerOf(service.database);
  return {
    chain,
    service,
    owner,
    async stop() {
      await owner.end();
      await service.stop();
      await chain.stop();
    },
  };
}

export function ownerOf(database: TestDatabase): pg.Pool {
  const owner = new pg.Pool({ connectionString: database.ownerUrl, max: 4 });
  return owner.on("error", () => undefined);
}

/** Every row of every table as text, with hex and base64 also decoded. */
export async function everyRow({ owner }: Pick<Ground, "owner">): Promise<readonly string[]> {
  const tables = await owner.query<{ read: string }>(
    `SELECT format('SELECT t::text AS row FROM %I.%I t', schemaname, tablename) AS read FROM pg_tables
     WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`,
  );
  const rows: string[] = [];
  for (const { read } of tables.rows)
    rows.push(...(await owner.query<{ row: string }>(read)).rows.map(({ row }) => row));
  return rows.map((row) => {
    const decoded = [
      ...(row.match(/\\x[0-9a-f]{64,}/g) ?? []).map((word) => Buffer.from(word.slice(2), "hex")),
      ...(row.match(/[A-Za-z0-9+/=_-]{64,}/g) ?? []).map((word) => Buffer.from(word, "base64")),
    ];
    return [row, ...decoded.map((bytes) => bytes.toString("latin1"))].join("\n");
  });
}

/** Until this many statements are waiting for a row. */
export const untilWaiting = async ({ owner }: Pick<Ground, "owner">, wanted: number): Promise<void> => {
  const text = `SELECT 1 FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock' AND wait_event IN ('tuple', 'transactionid')`;
  await eventually(async () => (await owner.query(text)).rowCount, wanted);
};
