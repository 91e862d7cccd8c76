import type { IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { eachNetwork } from "../../../api/platform/networks.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { serveHttp } from "../../support/http-server.ts";
import { expectNoSignatureAnywhere, expectProblem } from "../../support/payments/expectations.ts";
import { chargedOnce, nothingCharged } from "../../support/payments/on-chain.ts";
import { post, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";
import { ALONE, startService } from "../../support/service/service.ts";

/** The method that the node in front of the chain currently rejects. */
let broken: string | null = null;
let rejected = 0;

const chain = await forFile(startTestChain());
const node = await forFile(
  serveHttp((incoming, outgoing) => {
    forward(incoming).then(
      ({ status, body }) => outgoing.writeHead(status, { "content-type": "application/json" }).end(body),
      () => outgoing.destroy(),
    );
  }),
);
const service = await forFile(startService({ chain, config: { ...ALONE, rpcUrls: eachNetwork(() => node.url) } }));

/** A node whose errors echo the request. */
async function forward(incoming: IncomingMessage): Promise<{ status: number; body: string }> {
  const asked = await text(incoming);
  const calls = [JSON.parse(asked)].flat() as { method: string }[];
  if (calls.some(({ method }) => method === broken)) {
    rejected += 1;
    return { status: 503, body: JSON.stringify({ error: asked }) };
  }
  const headers = { "content-type": "application/json" };
  const response = await fetch(chain.rpcUrl, { method: "POST", headers, body: asked });
  return { status: response.status, body: await response.text() };
}

test.each([
  ["eth_call", false],
  ["eth_estimateGas", false],
  ["eth_getLogs", true],
])("While a node rejects %s, a payment waits, and afterwards its header buys once", async (method, isCharged) => {
  const signed = await signPayment(await newPayer(chain));
  const pay = () => post(`${service.url}/test/basic`, v2(signed));
  broken = method;
  const answer = await pay();
  broken = null;
  expectProblem(answer, 503, "payment_pending");
  expect(answer.body.detail).toMatch(/Do not sign again; send the same header again/);
  if (isCharged) await chargedOnce(chain, signed);
  else await nothingCharged(chain, signed.authorization.from);
  expect((await pay()).status).toBe(200);
  await chargedOnce(chain, signed);
});

test("A settlement whose broadcast failed is broadcast again while the client waits", async () => {
  const signed = await signPayment(await newPayer(chain));
  broken = "eth_sendRawTransaction";
  rejected = 0;
  const waiting = post(`${service.url}/test/basic`, v2(signed));
  await expect.poll(() => rejected).toBeGreaterThan(0);
  await nothingCharged(chain, signed.authorization.from);
  broken = null;
  expect((await waiting).status).toBe(200);
  await chargedOnce(chain, signed);
});

test("No response, log line, or database row contains a plain signature", async () => {
  const before = service.logged.length;
  const signed = await signPayment(await newPayer(chain));
  broken = "eth_estimateGas";
  expectProblem(await post(`${service.url}/test/basic`, v2(signed)), 503, "payment_pending");
  broken = null;
  expect(service.logged.slice(before).some((line) => line.includes('"level":40'))).toBe(true);
  await expectNoSignatureAnywhere(service);
});
