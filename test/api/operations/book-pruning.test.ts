import { expect, test } from "vitest";
import { createBookPruning } from "../../../api/adapters/postgres/book-pruning.ts";
import { connect } from "../../../api/adapters/postgres/connection.ts";
import { forFile } from "../../support/for-file.ts";
import { connectOwner, freshDatabase } from "../../support/service/database.ts";

const database = await freshDatabase();
const owner = await forFile(connectOwner(database));
const pool = await forFile(connect(database.apiUrl));
const prune = createBookPruning(pool);

const left = async (text: string) => (await owner.query({ text, rowMode: "array" })).rows.flat().map(Number);

test("gas accounts are kept for a week, by the thousand", async () => {
  await owner.query(`INSERT INTO escrow_gas
    SELECT decode(lpad(to_hex(account), 40, '0'), 'hex'), (now() AT TIME ZONE 'UTC')::date - age, 5
    FROM generate_series(1, 700) AS account, unnest(ARRAY[0, 7, 8, 90]) AS age`);
  expect([await prune(), await prune(), await prune()]).toEqual([1_000, 400, 0]);
  const ages = "SELECT DISTINCT (now() AT TIME ZONE 'UTC')::date - day FROM escrow_gas ORDER BY 1";
  expect(await left(ages)).toEqual([0, 7]);
  expect(await left("SELECT count(*) FROM escrow_gas")).toEqual([1_400]);
});

test("booked transfers are kept for thirty days behind the position of their own chain", async () => {
  await owner.query("INSERT INTO decoy_watch VALUES (8453, 2000000, now()), (84532, 1296005, now())");
  await owner.query(`INSERT INTO decoy_transfer
    SELECT chain, decode(repeat('ab', 32), 'hex'), block, decode(repeat('cd', 20), 'hex'), decode(repeat('ef', 20), 'hex'), 1, false, block
    FROM unnest(ARRAY[8453, 84532, 1]) AS chain, unnest(ARRAY[4, 5, 703999, 704000, 1999999]) AS block`);
  expect([await prune(), await prune()]).toEqual([4, 0]);
  const of = (chain: number) => left(`SELECT block_number FROM decoy_transfer WHERE chain = ${chain} ORDER BY 1`);
  expect(await of(8453)).toEqual([704_000, 1_999_999]);
  expect(await of(84532)).toEqual([5, 703_999, 704_000, 1_999_999]);
  expect(await of(1)).toHaveLength(5);
});
