import { expect, test } from "vitest";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { holdExam, untrue } from "../../support/sellers/held-exam.ts";
import { startService } from "../../support/service/service.ts";

const chain = await forFile(startTestChain());
const service = await forFile(startService({ chain }));

test("our own service passes its own exam, on every check", async () => {
  const resource = { url: `${service.url}/test/basic`, method: "POST", body: "{}" };
  const other = { url: `${service.url}/test/suite`, method: "POST", body: "{}" };
  const report = await holdExam(chain, { resource, other });
  expect(untrue(report)).toEqual([]);
  expect(report.level).toBe("full");
  // For the offer's and the receipt's signature alike.
  expect(report.exchanges.filter(({ request }) => request.url.endsWith("/.well-known/did.json"))).toHaveLength(1);
});
