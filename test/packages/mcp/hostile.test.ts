import { decodePaymentRequiredHeader, encodePaymentRequiredHeader } from "@x402/core/http";
import type { LocalAccount } from "viem";
import { beforeEach, describe, expect, test } from "vitest";
import { formatUsd } from "../../../api/platform/money.ts";
import type { ServiceAnswer } from "../../../packages/mcp/src/service.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { between, call, connectLocal } from "../../support/packages/mcp.ts";
import { nothingCharged, settlements } from "../../support/payments/on-chain.ts";
import { PRICES } from "../../support/payments/prices.ts";
import { newPayer } from "../../support/payments/signing.ts";
import { startService } from "../../support/service/service.ts";

const THIEF = `0x${"0b".repeat(20)}` as const;
const [ALICE, BOB] = [`0x${"a1".repeat(20)}`, `0x${"B0".repeat(20)}`];
const HASH = "0".repeat(64);
const CLAIM = { category: "payload-hash", conditions: { payload_text: "as agreed", expected_sha256: HASH } };

let payer: LocalAccount;
const chain = await forFile(startTestChain());
const service = await forFile(startService({ chain }));

beforeEach(async () => {
  payer = await newPayer(chain);
});

/** The same 402 with other terms. */
function offering(answer: ServiceAnswer, change: object): ServiceAnswer {
  const header = answer.headers.get("payment-required");
  if (header === null) return answer;
  const required = decodePaymentRequiredHeader(header);
  const accepts = required.accepts.map((offer) => ({ ...offer, ...change }));
  return {
    ...answer,
    headers: new Headers({ "payment-required": encodePaymentRequiredHeader({ ...required, accepts }) }),
  };
}

const rewritten = (answer: ServiceAnswer, change: (text: string) => string): ServiceAnswer => ({
  ...answer,
  text: change(answer.text),
});

describe("unpublished terms", () => {
  test("A higher price is refused although the caller allows more", async () => {
    const hostile = between(service.url, (answer) => offering(answer, { amount: "250001" }));
    // A generous caller does not change the published price.
    const client = await connectLocal({ service: hostile, payer, limit: 100_000_000n });
    const answer = await call(client, "certify", { test: "basic", max_price: "99" });
    expect(answer).toMatchObject({ isError: true, text: expect.stringMatching(/amount is "250001"/) });
    expect(answer.text).toMatch(/Nothing was signed/);
    expect(hostile.payments).toEqual([]);
    await nothingCharged(chain, payer);
  });

  test("A price that is also raised in the manifest is not paid without the caller's max_price", async () => {
    const hostile = between(service.url, (answer, { path }) =>
      path === "/.well-known/x402"
        ? rewritten(answer, (text) => text.replaceAll(`"amount":"${PRICES.basic}"`, '"amount":"900000"'))
        : offering(answer, { amount: "900000" }),
    );
    const client = await connectLocal({ service: hostile, payer });
    expect(await call(client, "certify", { test: "basic" })).toMatchObject({
      isError: true,
      text: expect.stringContaining(`expected at most ${PRICES.basic} (max_price ${formatUsd(PRICES.basic)} USDC)`),
    });
    expect(hostile.payments).toEqual([]);
  });

  test("A payee that is changed everywhere is refused if the user has configured one", async () => {
    const hostile = between(service.url, (answer, { path }) =>
      path === "/.well-known/x402"
        ? rewritten(answer, (text) => text.replace(/"payTo":"0x[0-9a-fA-F]{40}"/g, `"payTo":"${THIEF}"`))
        : offering(answer, { payTo: THIEF }),
    );
    const client = await connectLocal({ service: hostile, payer, payTo: service.config.payTo });
    expect(await call(client, "certify", { test: "basic" })).toMatchObject({
      isError: true,
      text: expect.stringMatching(/payTo is/),
    });
    expect(hostile.payments).toEqual([]);
  });

  test("The terms that were published when the session began apply until it ends", async () => {
    let isTurned = false;
    const hostile = between(service.url, (answer, { path }) => {
      if (!isTurned) return answer;
      return path === "/.well-known/x402"
        ? rewritten(answer, (text) => text.replace(/"payTo":"0x[0-9a-fA-F]{40}"/g, `"payTo":"${THIEF}"`))
        : offering(answer, { payTo: THIEF });
    });
    const client = await connectLocal({ service: hostile, payer });
    expect(await call(client, "certify", { test: "basic" })).toMatchObject({ isError: false });
    isTurned = true;
    expect(await call(client, "certify", { test: "basic" })).toMatchObject({ isError: true });
    expect(hostile.payments).toHaveLength(1);
  });

  test.each([
    ["an invalid manifest", (answer: ServiceAnswer) => rewritten(answer, () => "{}"), /not an x402 manifest/],
    ["a manifest without the path", (answer: ServiceAnswer) => rewritten(answer, () => '{"resources":[]}'), /no price/],
  ])("Nothing is signed with %s", async (_name, change, message) => {
    const hostile = between(service.url, (answer, { path }) =>
      path === "/.well-known/x402" ? change(answer) : answer,
    );
    const answer = await call(await connectLocal({ service: hostile, payer }), "certify", { test: "basic" });
    expect(answer).toMatchObject({ isError: true, text: expect.stringMatching(message) });
    expect(hostile.payments).toEqual([]);
  });
});

/** The same response with another PAYMENT-RESPONSE. */
function settledAs(answer: ServiceAnswer, change: object): ServiceAnswer {
  const settled = JSON.parse(Buffer.from(answer.headers.get("payment-response") ?? "", "base64").toString());
  const header = Buffer.from(JSON.stringify({ ...settled, ...change })).toString("base64");
  return { ...answer, headers: new Headers({ "payment-response": header }) };
}

describe("an invalid response to a payment", () => {
  test.each([
    ["a reversed verdict", (text: string) => text.replace('"verdict":"refund"', '"verdict":"release"'), /jws_mismatch/],
    ["a verdict without a proof", (text: string) => text.replace('"proof":', '"prof":'), /there is no proof/],
    ["a duplicate member", (text: string) => text.replace("{", '{"verdict":"release",'), /duplicate_key/],
    ["no verdict", () => "{}", /signature is not valid/],
  ])("The error for %s names the payment, and the response is not passed on", async (_name, change, message) => {
    const hostile = between(service.url, (answer) =>
      answer.headers.has("payment-response") ? rewritten(answer, change) : answer,
    );
    const answer = await call(await connectLocal({ service: hostile, payer }), "arbiter_verify", CLAIM);
    const [settled] = await settlements(chain, payer.address);
    expect(answer).toMatchObject({ isError: true, structured: {}, text: expect.stringMatching(message) });
    expect(answer.text).toContain(`Paid ${formatUsd(PRICES.basic)} USDC to`);
    expect(answer.text).toContain(settled?.transaction);
    expect(answer.text).not.toContain("release");
  });

  test.each([
    [
      "a response that is not JSON",
      (answer: ServiceAnswer) => rewritten(answer, () => "<html>"),
      /did not return JSON/,
    ],
    [
      "a response without a settlement",
      (answer: ServiceAnswer) => ({ ...answer, headers: new Headers() }),
      /did not report the settlement/,
    ],
    [
      "a response with the settlement of another wallet",
      (answer: ServiceAnswer) => settledAs(answer, { payer: THIEF }),
      /is for a different payment/,
    ],
    [
      "a response with a settlement in test money",
      (answer: ServiceAnswer) => settledAs(answer, { network: "eip155:84532" }),
      /is for a different payment/,
    ],
    [
      "a response with an invalid payer",
      (answer: ServiceAnswer) => settledAs(answer, { payer: "0x" }),
      /Address "0x" is invalid/,
    ],
  ])("The error for %s names the signed payment", async (_name, change, message) => {
    const hostile = between(service.url, (answer) =>
      answer.headers.has("payment-response") ? change(answer) : answer,
    );
    const answer = await call(await connectLocal({ service: hostile, payer }), "certify", { test: "basic" });
    expect(answer).toMatchObject({ isError: true, text: expect.stringMatching(message) });
    expect(answer.text).toMatch(/A payment of 0\.25 USDC to 0x\w{40} was signed and counts/);
  });

  test.each([
    [
      "another claim",
      { conditions: { payload_text: "something else", expected_sha256: HASH } },
      /different conditions/,
    ],
    ["another deal", { deal_ref: "deal 8" }, /a different deal/],
    ["other parties", { parties: { payer: ALICE, payee: THIEF } }, /different parties/],
    ["no parties", { parties: undefined }, /different parties/],
  ])("A genuine verdict on %s is refused", async (_name, other, message) => {
    const claim = { ...CLAIM, deal_ref: "deal 7", parties: { payer: ALICE, payee: BOB } };
    const hostile = between(
      service.url,
      (answer) => answer,
      (request) => ({ ...request, body: { ...claim, ...other } }),
    );
    const client = await connectLocal({ service: hostile, payer });
    expect(await call(client, "arbiter_verify", claim)).toMatchObject({
      isError: true,
      text: expect.stringMatching(message),
    });
  });

  test("A certificate for another wallet or for another test is refused", async () => {
    for (const [change, message] of [
      [(text: string) => text.replace(/"wallet":"0x[0-9a-f]{40}/, `"wallet":"${THIEF}`), /a different wallet/],
      [(text: string) => text.replace('"product":"basic"', '"product":"suite"'), /certifies suite, not basic/],
    ] as const) {
      const hostile = between(service.url, (answer) =>
        answer.headers.has("payment-response") ? rewritten(answer, change) : answer,
      );
      const answer = await call(await connectLocal({ service: hostile, payer }), "certify", { test: "basic" });
      expect(answer).toMatchObject({ isError: true, text: expect.stringMatching(message) });
    }
  });
});
