import { gzipSync } from "node:zlib";
import { zeroHash } from "viem";
import { expect, test } from "vitest";
import { startTestChain } from "../../support/chain/chain.ts";
import { askedOnChain, deployEscrow, type Held, hold, newMerchant, statusOf } from "../../support/escrow/contract.ts";
import { deliver, deliverVersion2, headersOf, JSON_TYPE, type Sent } from "../../support/escrow/delivery.ts";
import { eventually } from "../../support/eventually.ts";
import { forFile } from "../../support/for-file.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { send } from "../../support/payments/requests.ts";
import { startService } from "../../support/service/service.ts";

const chain = await forFile(startTestChain());
const escrow = await deployEscrow(chain);
const service = await forFile(startService({ chain, config: { escrowAddresses: [escrow.address] } }));
const merchant = newMerchant();
const newHold = () => hold({ chain, escrow }, merchant.address);

const GZIP: Sent = { contentType: "application/json", contentEncoding: "gzip", body: gzipSync('{"haiku":"pond"}') };
const deliver2 = (held: Held, signed: Sent, sent: Sent = signed) =>
  deliverVersion2(service, merchant, { id: held.id, signed, sent });

test("compressed JSON is released; its record says the coding and the version", async () => {
  const held = await newHold();
  const { body } = await deliver2(held, GZIP);
  expect(body).toMatchObject({ decision: "release", rule: "delivered" });
  expect((await send(String(body.record_url))).body).toMatchObject({
    evaluation_version: 2,
    delivery: { content_type: "application/json", content_encoding: "gzip", body_bytes: GZIP.body.length },
  });
  await eventually(() => statusOf({ chain, escrow }, held), "released" as const);
});

test("version 1 stays what it was: nothing is decoded, and its record has the same fields", async () => {
  const held = await newHold();
  const { body } = await deliver(service, merchant, { ...held, headers: headersOf(GZIP), body: GZIP.body });
  expect(body).toMatchObject({ decision: "refund", rule: "malformed_json" });
  const record = (await send(String(body.record_url))).body as { delivery: object };
  expect(record).toMatchObject({ evaluation_version: 1 });
  expect(Object.keys(record.delivery).sort()).toEqual(["body_bytes", "body_sha256", "content_type", "status"]);
  const refused = await deliver(service, merchant, {
    ...(await newHold()),
    status: 422,
    headers: JSON_TYPE,
    body: "{}",
  });
  expect(refused.body).toMatchObject({ rule: "error_status" });
});

test.each<[string, Sent]>([
  ["content type", { ...GZIP, contentType: "text/plain" }],
  ["content type's absence", { contentEncoding: "gzip", body: GZIP.body }],
  ["coding", { ...GZIP, contentEncoding: "br" }],
  ["coding's absence", { contentType: "application/json", body: GZIP.body }],
])("another %s is not what the merchant signed", async (_, sent) => {
  const held = await newHold();
  expectProblem(await deliver2(held, GZIP, sent), 403, "not_the_merchant");
  expect(await statusOf({ chain, escrow }, held)).toBe("held");
});

test("a decompression bomb is refunded, and so is what a coding does not fit", async () => {
  const bomb = { ...GZIP, body: gzipSync(Buffer.alloc(64 * 1024 * 1024, "{}")) };
  expect((await deliver2(await newHold(), bomb)).body).toMatchObject({ decision: "refund", rule: "undecodable" });
  const lie = { ...GZIP, body: '{"haiku":"pond"}' };
  expect((await deliver2(await newHold(), lie)).body).toMatchObject({ decision: "refund", rule: "undecodable" });
});

test.each([
  [400, "refused_input"],
  [401, "error_status"],
  [422, "refused_input"],
  [500, "error_status"],
])("%i is %s; only a refusal of the input is refunded without a record on the chain", async (status, rule) => {
  const held = await newHold();
  const { body } = await deliver2(held, { status, contentType: "application/json", body: '{"error":"no"}' });
  expect(body).toMatchObject({ decision: "refund", rule });
  await eventually(() => statusOf({ chain, escrow }, held), "refunded" as const);
  // The index counts a refund against the merchant only by its record.
  const record = rule === "refused_input" ? zeroHash : body.record;
  expect(await askedOnChain({ chain, escrow }, held)).toMatchObject([{ decision: "refund", event: { record } }]);
  expect((await send(String(body.record_url))).body).toMatchObject({ rule, decision: "refund" });
});
