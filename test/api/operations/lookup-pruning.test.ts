import { expect, test } from "vitest";
import { connect } from "../../../api/adapters/postgres/connection.ts";
import { createLookupPruning } from "../../../api/adapters/postgres/lookup-pruning.ts";
import { forFile } from "../../support/for-file.ts";
import { connectOwner, freshDatabase } from "../../support/service/database.ts";

const database = await freshDatabase();
const owner = await forFile(connectOwner(database));
const prune = createLookupPruning(await forFile(connect(database.apiUrl)));

const left = async (text: string) => (await owner.query({ text, rowMode: "array" })).rows.flat().map(Number);
const WALLET = "decode(lpad(to_hex(n), 40, '0'), 'hex')";

test("look-ups that nobody has asked for in a month are deleted, by the thousand, and no process loses what it reads", async () => {
  await owner.query(`INSERT INTO inflow (wallet, basis, inflows, claimed_until, used_at)
    SELECT ${WALLET}, 'a', '{}', now() + make_interval(secs => CASE WHEN n > 1300 THEN 60 ELSE -60 END), now() - make_interval(days => 31)
    FROM generate_series(1, 1302) AS n`);
  await owner.query(`INSERT INTO inflow (wallet, basis, inflows, claimed_until, used_at)
    SELECT ${WALLET}, 'a', '{}', now(), now() - make_interval(days => 29) FROM generate_series(2001, 2003) AS n`);
  expect([await prune(), await prune(), await prune()]).toEqual([1_000, 300, 0]);
  expect(await left("SELECT count(*) FROM inflow")).toEqual([5]);
});

test("snapshots are kept for a day, marks for a month, an hour's requests for a day", async () => {
  await owner.query(`INSERT INTO score_lookup SELECT ${WALLET}, 'a', 1, '{}', now() - make_interval(hours => n)
    FROM unnest(ARRAY[0, 23, 25, 99]) AS n`);
  await owner.query(`INSERT INTO lookup_mark SELECT n, decode(repeat('ab', 32), 'hex'), decode(repeat('cd', 32), 'hex'),
    now() - make_interval(days => n) FROM unnest(ARRAY[0, 29, 31]) AS n`);
  await owner.query(`INSERT INTO lookup_budget SELECT floor(extract(epoch FROM now()) / 3600)::int - n, client, 1
    FROM unnest(ARRAY[0, 23, 26, 99]) AS n, unnest(ARRAY['', '10.0.0.1']) AS client`);
  expect([await prune(), await prune()]).toEqual([2 + 1 + 4, 0]);
  expect(await left("SELECT count(*) FROM score_lookup")).toEqual([2]);
  expect(await left("SELECT block FROM lookup_mark ORDER BY 1")).toEqual([0, 29]);
  expect(await left("SELECT count(*) FROM lookup_budget")).toEqual([4]);
});
