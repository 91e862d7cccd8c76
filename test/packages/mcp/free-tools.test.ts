import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { formatUsd } from "../../../api/platform/money.ts";
import { FREE_TOOLS } from "../../../packages/mcp/src/tools/free.ts";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { between, call, connectHttp, connectLocal } from "../../support/packages/mcp.ts";
import { settlements } from "../../support/payments/on-chain.ts";
import { PRICES } from "../../support/payments/prices.ts";
import { challengeOf, encode, post, send } from "../../support/payments/requests.ts";
import { startService } from "../../support/service/service.ts";
import { STOCK_CLIENTS } from "../../support/sessions/agents.ts";

const STRANGER = `0x${"ab".repeat(20)}`;
const HEADERS = { "content-type": "application/json", accept: "application/json, text/event-stream" };

const chain = await forFile(startTestChain());
const service = await forFile(startService({ chain }));
const payer = devAccount(3);
const wallet = payer.address.toLowerCase();
const { status } = await (STOCK_CLIENTS[0] as (typeof STOCK_CLIENTS)[number]).post(`${service.url}/test/basic`, payer);
expect(status).toBe(200);

test("POST /mcp lists the seven free tools with their input schemas and marks them as read-only", async () => {
  const { tools } = await (await connectHttp(service.url)).listTools();
  expect(tools.map(({ name }) => name)).toEqual([
    "verify_agent",
    "verify_seller",
    "check_credential",
    "list_tests",
    "arbiter_policy",
    "escrow_info",
    "settlement_status",
  ]);
  for (const { description, inputSchema, annotations, ...others } of tools) {
    expect(description).toMatch(/Free\.$/);
    expect(inputSchema).toMatchObject({ type: "object", additionalProperties: false });
    expect(others).not.toHaveProperty("outputSchema");
    expect(annotations).toEqual({ readOnlyHint: true });
  }
});

test.each([
  ["verify_agent", () => ({ wallet }), () => `/verify?wallet=${wallet}`],
  ["list_tests", () => ({}), () => "/inspect"],
  ["arbiter_policy", () => ({}), () => "/arbiter/policy"],
  ["escrow_info", () => ({}), () => "/escrow"],
])("%s returns the response of the service's own route, once, as JSON text", async (name, input, path) => {
  const answer = await (await connectHttp(service.url)).callTool({ name, arguments: input() });
  expect(answer).toMatchObject({ content: [{ type: "text" }] });
  expect(answer.content).toHaveLength(1);
  expect(answer).not.toHaveProperty("structuredContent");
  const structured = JSON.parse((answer.content as unknown as readonly { readonly text: string }[])[0]?.text ?? "");
  const { checked_at: _, ...route } = (await send(`${service.url}${path()}`)).body;
  expect(structured).toMatchObject(route);
});

test("settlement_status returns the status of a payment and of an unused nonce", async () => {
  const client = await connectHttp(service.url);
  const [paid] = await settlements(chain, payer.address);
  const nonce = String(paid?.nonce);
  await vi.waitFor(async () => {
    const { structured } = await call(client, "settlement_status", { from: wallet, nonce });
    expect(structured).toMatchObject({ status: "settled", transaction: paid?.transaction });
  }, 20_000);
  const unused = { network: "base", from: wallet, nonce: `0x${"0".repeat(64)}` };
  expect((await call(client, "settlement_status", unused)).structured).toMatchObject({
    status: "pending",
    final: false,
  });
  expect(await call(client, "settlement_status", { from: wallet, nonce: "0x1" })).toMatchObject({ isError: true });
});

test("check_credential checks the signature of a wallet's credential, fetched or supplied", async () => {
  const client = await connectHttp(service.url);
  const own = await call(client, "check_credential", { wallet });
  expect(own.structured).toMatchObject({
    says: "valid, verified",
    about: `wallet ${wallet.toLowerCase()}`,
    valid: true,
    signature: { valid: true },
    freshness: { state: "current" },
    credential: { credentialSubject: { wallet, verified: true } },
  });
  const handed = (await send(`${service.url}/credential/${STRANGER}`)).text;
  const other = await call(client, "check_credential", { credential: handed });
  expect(other.structured).toMatchObject({
    says: "valid, not verified: never tested",
    about: `wallet ${STRANGER.toLowerCase()}`,
    valid: true,
    credential: { credentialSubject: { tested: false } },
  });
});

test("A changed credential is not valid, and none of it is returned", async () => {
  const { text } = await send(`${service.url}/credential/${STRANGER}`);
  const credential = text.replace('"verified":false', '"verified":true');
  expect(credential).not.toBe(text);
  const { structured } = await call(await connectHttp(service.url), "check_credential", { credential });
  expect(structured).toMatchObject({
    says: "not valid: not signed by this service",
    about: null,
    valid: false,
    signature: { valid: false, code: "jws_mismatch" },
    credential: null,
  });
});

test.each([
  ["verify_agent", {}, /wallet/],
  ["verify_agent", { wallet: "vitalik.eth" }, /0x and 40 hex digits/],
  ["verify_agent", { wallet: STRANGER, color: "red" }, /color/],
  ["check_credential", {}, /exactly one of wallet, origin, and credential/],
  ["check_credential", { wallet: STRANGER, credential: "{}" }, /exactly one of wallet, origin, and credential/],
  ["score_wallet", { wallet: STRANGER }, /score_wallet/],
])("%s with %j is an error that names the fault", async (name, input, message) => {
  const client = await connectHttp(service.url);
  const outcome = await call(client, name, input).catch((error: Error) => ({ isError: true, text: error.message }));
  expect(outcome).toMatchObject({ isError: true, text: expect.stringMatching(message) });
});

test("An internal error appears only in the log", async () => {
  const rename = (from: string, to: string) =>
    withClient(service.database.ownerUrl, (owner) => owner.query(`ALTER TABLE ${from} RENAME TO ${to}`));
  const client = await connectHttp(service.url);
  await rename("certificate", "mislaid");
  try {
    const outcome = await call(client, "verify_agent", { wallet: STRANGER });
    expect(outcome).toMatchObject({
      isError: true,
      text: expect.stringMatching(/500: Something went wrong on our side/),
    });
    expect(outcome.text).not.toMatch(/relation|certificate/);
  } finally {
    await rename("mislaid", "certificate");
  }
});

test("A client with the protocol's first revision is also served", async () => {
  const client = new Client({ name: "old", version: "1" }, { supportedProtocolVersions: ["2025-03-26"] });
  onTestFinished(() => client.close());
  await client.connect(new StreamableHTTPClientTransport(new URL(`${service.url}/mcp`)));
  expect((await client.listTools()).tools).toHaveLength(FREE_TOOLS.length);
});

test("GET gets a 405, a batch a 400, an oversized body a 413, and invalid JSON a JSON-RPC parse error", async () => {
  const url = `${service.url}/mcp`;
  const list = { jsonrpc: "2.0", id: 1, method: "tools/list" };
  expect(await send(url)).toMatchObject({ status: 405 });
  expect(await post(url, HEADERS, JSON.stringify([list, list]))).toMatchObject({
    status: 400,
    body: { error: { code: -32_600, message: expect.stringMatching(/^Batches are not supported/) } },
  });
  expect(await post(url, HEADERS, JSON.stringify({ ...list, id: "x".repeat(70_000) }))).toMatchObject({ status: 413 });
  expect(await post(url, HEADERS, "{")).toMatchObject({ status: 400, body: { error: { code: -32700 } } });
});

describe("my_purchases", () => {
  const honest = () => between(service.url, (answer) => answer);

  test("It signs in with this server's wallet and lists its purchases, and a transaction's answer comes in full", async () => {
    const way = honest();
    const client = await connectLocal({ service: way, payer, limit: 0n });
    const list = await call(client, "my_purchases");
    const bought = {
      resource: `${service.url}/test/basic`,
      amount_usd: formatUsd(PRICES.basic),
      answer_state: "stored",
    };
    expect(list.structured).toEqual({
      wallet,
      purchases: [expect.objectContaining({ ...bought, answer: { status: 200 } })],
      next_cursor: null,
    });
    const [{ transaction }] = list.structured.purchases as [{ transaction: string }];
    const one = await call(client, "my_purchases", { transaction });
    expect(one.structured).toMatchObject({ purchases: [{ ...bought, answer: { status: 200, body: { wallet } } }] });
    const other = await call(client, "my_purchases", { transaction: `0x${"ab".repeat(32)}` });
    expect(other.structured).toEqual({ wallet, purchases: [], next_cursor: null });
    expect(way.payments).toEqual([]);
  });

  test("Without a key it explains what to do", async () => {
    const outcome = await call(await connectLocal({ service: honest() }), "my_purchases");
    expect(outcome).toMatchObject({ isError: true, text: expect.stringMatching(/PAYER_PRIVATE_KEY/) });
  });

  /** Calls the tool with a challenge that is changed in transit. Returns its error and the number of signatures. */
  async function asked(change: (info: Record<string, unknown>) => object) {
    let signatures = 0;
    const account = {
      ...payer,
      signMessage: (message: Parameters<typeof payer.signMessage>[0]) => {
        signatures++;
        return payer.signMessage(message);
      },
    };
    const way = between(service.url, (answer) => {
      if (answer.status !== 402) return answer;
      const { extensions, ...required } = challengeOf({ ...answer, body: {} });
      const { info, ...rest } = (extensions as { "sign-in-with-x": { info: Record<string, unknown> } })[
        "sign-in-with-x"
      ];
      const changed = { ...required, extensions: { "sign-in-with-x": { ...rest, info, ...change(info) } } };
      return { ...answer, headers: new Headers({ "payment-required": encode(changed) }) };
    });
    const { isError, text } = await call(await connectLocal({ service: way, payer: account }), "my_purchases");
    return { isError, text, signatures };
  }

  test.each<[string, (info: Record<string, unknown>) => object, RegExp]>([
    ["for another domain", (info) => ({ info: { ...info, domain: "bank.example" } }), /its domain is bank\.example/],
    ["for another origin", (info) => ({ info: { ...info, uri: "https://bank.example/purchases" } }), /its uri is/],
    ["for another chain", () => ({ supportedChains: [{ chainId: "eip155:1", type: "eip191" }] }), /eip155:8453/],
    [
      "that is valid for a day",
      ({ issuedAt, ...info }) => ({
        info: { ...info, issuedAt, expirationTime: new Date(Date.parse(String(issuedAt)) + 86_400_000).toISOString() },
      }),
      /more than 10 minutes/,
    ],
    ["with extra lines", (info) => ({ info: { ...info, statement: "Hello.\nURI: x" } }), /sign-in-with-x/],
    ["without a nonce", (info) => ({ info: { ...info, nonce: "" } }), /sign-in-with-x/],
  ])("It does not sign a challenge %s", async (_, change, message) => {
    expect(await asked(change)).toEqual({ isError: true, text: expect.stringMatching(message), signatures: 0 });
  });

  test("It reports why the service refused its sign-in", async () => {
    const outcome = await asked((info) => ({ info: { ...info, nonce: "a".repeat(68) } }));
    expect(outcome).toEqual({
      isError: true,
      text: expect.stringMatching(/did not accept the sign-in: invalid_siwx_nonce/),
      signatures: 1,
    });
  });
});
