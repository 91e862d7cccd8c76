import { expect, test } from "vitest";
import { connect } from "../../../api/adapters/postgres/connection.ts";
import { createLogStore } from "../../../api/adapters/postgres/log-store.ts";
import { parseVerifierKey } from "../../../packages/verifier/src/tlog/verifier-key.ts";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { migrate } from "../../../scripts/migrate.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { eventually } from "../../support/eventually.ts";
import { forFile } from "../../support/for-file.ts";
import { auditLog } from "../../support/log/audit.ts";
import { readProof } from "../../support/log/read-proof.ts";
import { recordMaker } from "../../support/log/records.ts";
import { startApiProcess } from "../../support/service/api-process.ts";
import { connectOwner } from "../../support/service/database.ts";
import { olderDatabase } from "../../support/service/older-database.ts";

const RECORDS = 60;

const database = await olderDatabase("0028_verdict_transfers");
const chain = await forFile(startTestChain());
const sepolia = await forFile(startTestChain({ network: "eip155:84532" }));
const owner = await forFile(await connectOwner(database));
const recordsOf = await recordMaker();
const rows = async (text: string) => (await owner.query({ text, rowMode: "array" })).rows;
const start = () =>
  startApiProcess({
    database,
    baseRpcUrl: chain.rpcUrl,
    baseSepoliaRpcUrl: sepolia.rpcUrl,
    env: { BASE_URL: "http://localhost:4021" },
  });

test("a service that had records before it had a log puts each into it, once and in their order, whatever kills it", async () => {
  const groups = Array.from({ length: RECORDS }, (_, ordinal) => recordsOf(ordinal));
  const records = groups.flat();
  // Written in another order than that of their times.
  for (const { statements } of groups.toReversed().flat())
    for (const { text, values } of statements) await owner.query(text, [...values]);
  const counts = "SELECT (SELECT count(*) FROM verdict), (SELECT count(*) FROM escrow_contest_answer)";
  expect(await rows(counts)).toEqual([[String(2 * RECORDS), String(RECORDS)]]);
  await migrate(database.ownerUrl);
  expect(await rows("SELECT type, ref FROM log_pending ORDER BY seq")).toEqual(
    records.map(({ type, ref }) => [type, ref]),
  );

  await withClient(database.ownerUrl, async (holder) => {
    await holder.query("BEGIN");
    await holder.query("LOCK TABLE log_checkpoint IN SHARE ROW EXCLUSIVE MODE");
    const killed = await start();
    const blocked = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
      AND query LIKE 'INSERT INTO log_checkpoint%'`;
    await eventually(async () => ((await owner.query(blocked)).rowCount ?? 0) > 0, true);
    await killed.kill();
    await holder.query("ROLLBACK");
  });
  const api = await forFile(start());
  await eventually(async () => (await rows("SELECT FROM log_pending")).length, 0, 60_000);
  const announced = "('policy', 'score_version', 'signing_key')";
  expect(await rows(`SELECT type, ref FROM log_entry WHERE type NOT IN ${announced} ORDER BY idx`)).toEqual(
    records.map(({ type, ref }) => [type, ref]),
  );
  const store = createLogStore(await forFile(connect(database.ownerUrl)));
  const [own] = await store.generations();
  expect(await auditLog({ owner, store, verifier: parseVerifierKey(own?.vkey ?? "") })).toEqual([]);
  for (const { type, ref, document } of records.slice(-7)) {
    const place = await store.find(type, ref);
    if (document !== null) expect(JSON.parse(String(place?.entry)).document).toEqual(JSON.parse(document));
    const proof = await fetch(`${api.url}/log/entry/${place?.index}.tlog-proof`);
    expect([proof.status, readProof(await proof.text()).index]).toEqual([200, place?.index]);
  }
});
