import pg from "pg";
import { expect, test } from "vitest";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { send } from "../../support/payments/requests.ts";
import { heldIn } from "../../support/sellers/samples.ts";
import { startService } from "../../support/service/service.ts";

const chain = await forFile(startTestChain());
const service = await forFile(startService({ chain }));
const pool = await forFile(new pg.Pool({ connectionString: service.database.apiUrl, max: 1 }));
const get = (path: string, accept = "application/json") => send(`${service.url}${path}`, { headers: { accept } });

test("a record, its status and its page give every finding that does not hold a remedy with a link, and each check its weight", async () => {
  const found = { statement: "HEAD is refused or quoted the same, and answered 200", holds: false, exchanges: [1] };
  const served = { statement: "A payment is answered with the result", holds: true, exchanges: [1] };
  const failed = await heldIn(
    pool,
    { origin: "https://remedied.example" },
    {
      level: null,
      checks: [
        { check: "terms", outcome: "fail", reason: null, findings: [{ ...found, code: "terms.head" }] },
        { check: "purchase", outcome: "pass", reason: null, findings: [{ ...served, code: "purchase.served" }] },
      ],
    },
  );
  const link = "https://www.rfc-editor.org/rfc/rfc9110#section-9.3.2";
  const checks = [
    { check: "terms", weight: "safe", findings: [{ ...found, remedy: { text: expect.any(String), link } }] },
    { check: "purchase", weight: "safe", findings: [{ ...served, remedy: null }] },
  ];
  expect((await get(`/cert/${failed}`)).body).toMatchObject({ checks });
  expect((await get(`/exam/${failed}`)).body).toMatchObject({ checks });
  const page = (await get(`/cert/${failed}`, "text/html")).text;
  expect(page).toMatch(new RegExp(`<strong>Remedy:</strong> Refuse HEAD,[^<]+<a href="${link}"`));
  expect((await get("/test/seller")).body).toMatchObject({
    checks: expect.arrayContaining([expect.objectContaining({ check: "lost_answer", weight: "full" })]),
  });
});
