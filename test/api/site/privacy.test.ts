import { expect, test } from "vitest";
import { STORED_DATA } from "../../../api/site/stored-data.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { send } from "../../support/payments/requests.ts";
import { connectOwner } from "../../support/service/database.ts";
import { startService } from "../../support/service/service.ts";

const config = { operator: "Example Trust Ltd, 1 Example Street", abuseContact: "mailto:abuse@trust.example" };
const service = await forFile(startService({ chain: await forFile(startTestChain()), jobs: false, config }));

test("The page names the stored data with its duration and purpose, the operator, and the contact", async () => {
  const text = await send(`${service.url}/privacy`);
  const page = await send(`${service.url}/privacy`, { headers: { accept: "text/html" } });
  expect(text.headers.get("content-type")).toBe("text/markdown; charset=utf-8");
  expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
  for (const shown of [text.text, page.text]) {
    for (const value of Object.values(config)) expect(shown).toContain(value);
    expect(shown.split("Rehearsals")).toHaveLength(2);
  }
  expect((await send(`${service.url}/terms`)).text).toContain(config.operator);
});

test("Every table of the database is in exactly one row of the stored data", async () => {
  const owner = await forFile(connectOwner(service.database));
  const { rows } = await owner.query<{ name: string }>(
    "SELECT relname AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' ORDER BY relname",
  );
  expect(STORED_DATA.flatMap(({ tables }) => tables).toSorted()).toEqual(rows.map(({ name }) => name).toSorted());
});
