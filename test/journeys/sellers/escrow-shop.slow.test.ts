import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { handIn } from "../../support/arbiter/scene.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { deployOperator } from "../../support/escrow/contract.ts";
import { haiku, openShop } from "../../support/escrow/sale.ts";
import { eventually } from "../../support/eventually.ts";
import { forFile } from "../../support/for-file.ts";
import { v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";
import { buyExam, EXAM_KEY, ended, lineFor, outcomesOf } from "../../support/sellers/buying.ts";
import { connectOwner } from "../../support/service/database.ts";
import { startService } from "../../support/service/service.ts";

const chain = await forFile(startTestChain({ mining: { everySeconds: 1 } }));
const operator = await deployOperator(chain);
const examiner = privateKeyToAccount(EXAM_KEY).address;
await chain.fund(examiner, 20_000_000n);

let consent = "";
let shop: Hono["fetch"] | undefined;
const site = new Hono()
  .get("/.well-known/x402-exam.txt", (c) => c.text(consent))
  .all("/haiku", (c) => shop?.(c.req.raw, c.env) ?? c.notFound());
const origin = await new Promise<string>((resolve) => {
  const server = serve({ fetch: site.fetch, port: 0, hostname: "127.0.0.1" }, ({ port }) =>
    resolve(`http://127.0.0.1:${port}`),
  );
  void forFile({ stop: () => server.close() });
});
const config = {
  escrowAddresses: [operator.address],
  exams: { key: EXAM_KEY, daily: 50_000_000n },
  arbiterAllowedOrigins: [origin],
};
const service = await forFile(startService({ chain, config }));
const owner = await forFile(connectOwner(service.database));

test("A shop that sells through an escrow passes an exam and gets a public record of level full", async () => {
  const payer = await newPayer(chain, 5_000_000n);
  const url = `${origin}/haiku`;
  consent = await lineFor(service.url, url, payer);
  const { app, account } = await openShop({ chain, arbiter: service }, haiku, { escrow: operator.address });
  shop = app.fetch;
  const before = await chain.usdcBalance(examiner);
  const { answer } = await buyExam(service.url, payer, { url, method: "POST", body: '{"about":"rain"}' });
  expect(answer.status, answer.text).toBe(200);
  expect(answer.body).toMatchObject({ pay_to: account.address.toLowerCase(), price: "0.10" });
  const record = await ended(service.url, answer.body.id);
  expect(record, JSON.stringify(record.checks)).toMatchObject({ status: "complete", level: "full", spent: "0.30" });
  expect(outcomesOf(record)).toMatchObject({ purchase: "pass", forgery: "pass", lost_answer: "pass" });
  expect(await chain.usdcBalance(examiner)).toBe(before - 300_000n);
  await eventually(() => chain.usdcBalance(account.address), 297_000n);
  // The examiner is a party to these escrow deals, and every evaluation states that.
  const { rows } = await owner.query<{ document: string }>("SELECT document FROM escrow_evaluation");
  expect(rows).toHaveLength(3);
  for (const { document } of rows)
    expect(JSON.parse(document)).toMatchObject({ payer: examiner.toLowerCase(), service_is: "payer" });
  // The arbiter accepts no claim about a deal of the examiner.
  const conditions = { payload_text: "haiku", expected_sha256: "0".repeat(64) };
  const parties = { payer: examiner, payee: account.address };
  const claim = { category: "payload-hash", conditions, parties };
  const refused = await handIn(service, claim, v2(await signPayment(payer)));
  expect([refused.status, refused.body.errors]).toEqual([422, [expect.objectContaining({ rule: 7 })]]);
});
