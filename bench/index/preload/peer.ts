// The peer of `bench:index -- preload`: the same rows, without their keys, by PostgreSQL's SQL alone.
import { createReadStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import pg from "pg";
import { from as copyFrom } from "pg-copy-streams";
import { HISTORY_TABLES, historyTables, keyColumns } from "../../../indexer/history/tables.ts";
import { SERVICE } from "../generated-chain.ts";
import { INDEXES, RAW_TABLE, stepsOf, tableQueries, transfersOf } from "./peer-arithmetic.ts";

const { DATABASE_URL, INDEX_SCOPE, FILE = "" } = process.env;
const scope = INDEX_SCOPE === "selective" ? "selective" : "full";

const db = new pg.Client({ connectionString: DATABASE_URL });
await db.connect();
const make = async (name: string, statement: string) => {
  await db.query(statement);
  await db.query(`${INDEXES[name] ?? ""}; analyze ${name}`);
};
await db.query(`begin; drop schema if exists peer cascade; create schema peer; set local search_path to peer;
  set local work_mem = '128MB'; set local jit = off`);
await db.query(RAW_TABLE);
await pipeline(createReadStream(FILE), db.query(copyFrom("copy raw from stdin (format csv, header match)")));
await db.query("alter table raw add primary key (block, log_index); analyze raw");
await make("transfers", transfersOf({ scope, ownAddresses: [SERVICE], firstBlock: 1 }));
await db.query("drop table raw");
for (const { name, query } of stepsOf({ scope })) await make(name, `create unlogged table ${name} as ${query}`);
const queries = tableQueries(scope);
for (const table of historyTables(scope)) {
  const columns = HISTORY_TABLES[table].join();
  await db.query(
    `create table ${table} as select ${columns} from (${queries[table]}) rows order by ${keyColumns(table).join()}`,
  );
}
await db.query("commit");
await db.end();
console.log("done");
