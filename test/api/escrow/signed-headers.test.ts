import { gzipSync } from "node:zlib";
import { zeroHash } from "viem";
import { expect, test } from "vitest";
import { startTestChain } from "../../support/chain/chain.ts";
import { askedOnChain, deployEscrow, type Held, hold, newMerchant, statusOf } from "../../support/escrow/contract.ts";
import { deliver, headersOf, type Sent } from "../../support/escrow/delivery.ts";
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
const written = ({ status = 200, body, ...headers }: Sent) => ({
  status,
  headers: headersOf({ body, ...headers }),
  body,
});
const deliverSent = (held: Held, signed: Sent, sent: Sent = signed) =>
  deliver(service, merchant, { id: held.id, ...written(signed), sent: written(sent) });

test("compressed JSON is released; its record says the coding", async () => {
  const held = await newHold();
  const { body } = await deliverSent(held, GZIP);
  expect(body).toMatchObject({ decision: "release", rule: "delivered" });
  expect((await send(String(body.record_url))).body).toMatchObject({
    evaluation_version: 1,
    delivery: { content_type: "application/json", content_encoding: "gzip", body_bytes: GZIP.body.length },
  });
  await eventually(() => statusOf({ chain, escrow }, held), "released" as const);
});

test.each<[string, Sent]>([
  ["content type", { ...GZIP, contentType: "text/plain" }],
  ["content type's absence", { contentEncoding: "gzip", body: GZIP.body }],
  ["coding", { ...GZIP, contentEncoding: "br" }],
  ["coding's absence", { contentType: "application/json", body: GZIP.body }],
])("another %s is not what the merchant signed", async (_, sent) => {
  const held = await newHold();
  expectProblem(await deliverSent(held, GZIP, sent), 403, "not_the_merchant");
  expect(await statusOf({ chain, escrow }, held)).toBe("held");
});

test("a decompression bomb is refunded, and so is what a coding does not fit", async () => {
  const bomb = { ...GZIP, body: gzipSync(Buffer.alloc(64 * 1024 * 1024, "{}")) };
  expect((await deliverSent(await newHold(), bomb)).body).toMatchObject({ decision: "refund", rule: "undecodable" });
  const lie = { ...GZIP, body: '{"haiku":"pond"}' };
  expect((await deliverSent(await newHold(), lie)).body).toMatchObject({ decision: "refund", rule: "undecodable" });
});

test.each([
  [400, "refused_input"],
  [401, "error_status"],
  [422, "refused_input"],
  [500, "error_status"],
])("%i is %s; only a refusal of the input is refunded without a record on the chain", async (status, rule) => {
  const held = await newHold();
  const { body } = await deliverSent(held, { status, contentType: "application/json", body: '{"error":"no"}' });
  expect(body).toMatchObject({ decision: "refund", rule });
  await eventually(() => statusOf({ chain, escrow }, held), "refunded" as const);
  // The index counts a refund against the merchant only by its record.
  const record = rule === "refused_input" ? zeroHash : body.record;
  expect(await askedOnChain({ chain, escrow }, held)).toMatchObject([{ decision: "refund", event: { record } }]);
  expect((await send(String(body.record_url))).body).toMatchObject({ rule, decision: "refund" });
});
