import type { IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import type { LocalAccount } from "viem";
import { beforeEach, expect, test } from "vitest";
import { eachNetwork } from "../../../api/platform/networks.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { serveHttp } from "../../support/http-server.ts";
import { expectNoSignatureAnywhere, expectProblem } from "../../support/payments/expectations.ts";
import { chargedOnce, nothingCharged } from "../../support/payments/on-chain.ts";
import { type Answer, post, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";
import { ALONE, startService } from "../../support/service/service.ts";

let payer: LocalAccount;
/** The methods that the node in front of the chain currently rejects. */
const broken = new Set<string>();
const basic = () => `${service.url}/test/basic`;

const chain = await forFile(startTestChain());
const node = await forFile(
  serveHttp((incoming, outgoing) => {
    forward(incoming).then(
      ({ status, body }) => outgoing.writeHead(status, { "content-type": "application/json" }).end(body),
      () => outgoing.destroy(),
    );
  }),
);
const rpcUrls = eachNetwork(() => node.url);
const service = await forFile(startService({ chain, config: { ...ALONE, rpcUrls } }));

beforeEach(async () => {
  payer = await newPayer(chain);
});

/** A node that returns an error for some methods and echoes the request in it. */
async function forward(incoming: IncomingMessage): Promise<{ status: number; body: string }> {
  const asked = await text(incoming);
  const calls = [JSON.parse(asked)].flat() as { method: string }[];
  if (calls.some(({ method }) => broken.has(method))) return { status: 503, body: JSON.stringify({ error: asked }) };
  const headers = { "content-type": "application/json" };
  const response = await fetch(chain.rpcUrl, { method: "POST", headers, body: asked });
  return { status: response.status, body: await response.text() };
}

async function whileBroken<T>(methods: readonly string[], work: () => Promise<T>): Promise<T> {
  for (const method of methods) broken.add(method);
  try {
    return await work();
  } finally {
    broken.clear();
  }
}

function expectToWait(answer: Answer): void {
  expectProblem(answer, 503, "payment_pending");
  expect(answer.body.detail).toMatch(/Do not sign again; send the same header again/);
  expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
}

test("While the chain is unreachable, nothing is submitted, and the same header is accepted afterwards", async () => {
  const signed = await signPayment(payer);
  for (const method of ["eth_getBlockByNumber", "eth_call"])
    expectToWait(await whileBroken([method], () => post(basic(), v2(signed))));
  await nothingCharged(chain, payer);
  expect((await post(basic(), v2(signed))).status).toBe(200);
  await chargedOnce(chain, signed);
});

test("A settlement whose broadcast failed is broadcast again while the client waits", async () => {
  const signed = await signPayment(payer);
  const { waiting } = await whileBroken(["eth_sendRawTransaction"], async () => {
    const waiting = post(basic(), v2(signed));
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    return { waiting };
  });
  await nothingCharged(chain, payer);
  await cannotBeSubmitted();
  expect((await waiting).status).toBe(200);
  await chargedOnce(chain, signed);
});

/** Expects a second payment that could not be submitted to be uncharged, and to buy when it is sent again. */
async function cannotBeSubmitted(): Promise<void> {
  const signed = await signPayment(await newPayer(chain));
  expectToWait(await whileBroken(["eth_estimateGas"], () => post(basic(), v2(signed))));
  await nothingCharged(chain, signed.authorization.from);
  expect((await post(basic(), v2(signed))).status).toBe(200);
  await chargedOnce(chain, signed);
}

test("A settlement that the service could not see yields its result on a retry, without a second charge", async () => {
  const signed = await signPayment(payer);
  expectToWait(await whileBroken(["eth_getLogs"], () => post(basic(), v2(signed))));
  await chargedOnce(chain, signed);
  expect((await post(basic(), v2(signed))).status).toBe(200);
  await chargedOnce(chain, signed);
});

test("No response, log line, or database row contains a plain signature", async () => {
  expect(service.logged.filter((line) => line.includes('"level":40')).length).toBeGreaterThan(3);
  await expectNoSignatureAnywhere(service);
});
