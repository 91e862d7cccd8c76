import { join } from "node:path";
import { historyTables } from "../../indexer/history/tables.ts";
import { withClient } from "../../scripts/embedded/postgres.ts";
import { startProgram, stopProgram } from "../programs.ts";
import { judge } from "./goals.ts";
import { INDEXER_SETTINGS } from "./indexer.ts";
import { type Stage, withStage } from "./stage.ts";
import { writeCsv } from "./transfers-csv.ts";

// How large the rows of 90 days of authorized payments are, with their keys, as `npm run index:preload` loads them.

/** The width of a window, and the day before it. */
const DAYS = 92;
/** A wallet pays the same few others. On Base in January 2026 a payer made many more in 90 days. */
const HABITS = { payments: 12, payees: 2 };

async function measure({ env, chain, folder }: Stage): Promise<boolean> {
  const file = join(folder, "transfers.csv");
  await writeCsv(chain, file);
  const settings = { ...INDEXER_SETTINGS, ...env, INDEX_SCOPE: "selective", INDEX_HISTORY: "history" };
  await stopProgram(await startProgram("scripts/index-preload.ts", settings, { ready: /^history: /, args: [file] }));
  return withClient(env.DATABASE_URL, async (db) => {
    const one = async (query: string) => Number((await db.query<{ n: string }>(query)).rows[0]?.n);
    const payments = await one("select sum(count) as n from history.paid");
    const ofPayments = historyTables("authorised");
    const bytes = { authorised: 0, selective: 0 };
    for (const table of historyTables("selective")) {
      const [rows, size] = [
        await one(`select count(*) as n from history.${table}`),
        await one(`select pg_total_relation_size('history.${table}') as n`),
      ];
      bytes.selective += size;
      if (ofPayments.includes(table)) bytes.authorised += size;
      const [a, each] = [size / payments, rows === 0 ? 0 : size / rows];
      console.log(
        `${table.padEnd(14)} ${a.toFixed(1).padStart(7)} bytes a payment  ${each.toFixed(0).padStart(5)} a row  ${rows} rows`,
      );
    }
    const days = await one("select count(distinct day) as n from history.wallet_day");
    console.log(`${payments} payments on ${days} days`);
    console.log(`with the tables of scope selective ${(bytes.selective / payments).toFixed(0)} bytes a payment`);
    return judge([
      {
        name: "bytes a payment, tables and keys, scope authorised",
        value: bytes.authorised / payments,
        limit: 230,
        isFloor: false,
      },
      { name: "days in wallet_day", value: days, limit: DAYS, isFloor: false },
    ]);
  });
}

/** @param transfers of the chain, all of them payments. Returns whether all goals were met. */
export const runSize = (transfers: number): Promise<boolean> =>
  withStage({ transfers, authorisedEvery: 1, habits: HABITS }, measure);
