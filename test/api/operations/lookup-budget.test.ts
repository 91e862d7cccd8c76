import { expect, test } from "vitest";
import { connect } from "../../../api/platform/db/connection.ts";
import { createLookupBudget } from "../../../api/platform/db/lookup-budget.ts";
import { forFile } from "../../support/for-file.ts";
import { freshDatabase } from "../../support/service/database.ts";

const database = await freshDatabase();
const pool = await forFile(connect(database.apiUrl));

/** How many of so many requests each client is let through with, one after the other. */
async function letThrough(purpose: string, limits: { client: number; all: number }, clients: readonly string[]) {
  const budget = createLookupBudget(pool, limits, purpose);
  const counts: number[] = [];
  for (const client of clients) {
    let count = 0;
    for (let request = 0; request < 8; request++)
      count += await budget.spend(client).then(
        () => 1,
        () => 0,
      );
    counts.push(count);
  }
  return counts;
}

test("many addresses of one network spend a tenth of the hour together, and others have theirs", async () => {
  const flood = ["198.51.100.1", "198.51.100.2", "198.51.100.3", "198.51.100.4"];
  expect(await letThrough("a ", { client: 5, all: 120 }, [...flood, "198.51.101.1", "203.0.113.1"])).toEqual([
    ...[5, 5, 2, 0],
    ...[5, 5],
  ]);
  const v6 = ["2001:db8:1:1::/64", "2001:db8:1:2::/64", "2001:db8:1:3::/64", "2001:db8:2:1::/64"];
  expect(await letThrough("b ", { client: 5, all: 120 }, v6)).toEqual([5, 5, 2, 5]);
});

test("one client of a network has what a client may have, also where that is more than a tenth", async () => {
  expect(await letThrough("c ", { client: 5, all: 12 }, ["198.51.100.1", "203.0.113.1", "192.0.2.1"])).toEqual([
    5, 5, 2,
  ]);
});
