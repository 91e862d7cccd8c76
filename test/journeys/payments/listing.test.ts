import { createPublicKey, generateKeyPairSync } from "node:crypto";
import { ExactEvmScheme } from "@x402/evm/exact/client";
import { extractDiscoveryInfo } from "@x402/extensions/bazaar";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { jwtVerify } from "jose";
import { expect, test } from "vitest";
import { createRemoteSettler } from "../../../api/payments/settle/facilitator-chain.ts";
import type { FacilitatorAuth } from "../../../api/platform/config/facilitator-auth.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { respond, startFacilitator } from "../../support/payments/facilitator.ts";
import { challengeOf, post, v1 } from "../../support/payments/requests.ts";
import { BASE, newPayer, signPayment } from "../../support/payments/signing.ts";
import { startService } from "../../support/service/service.ts";

const { privateKey } = generateKeyPairSync("ed25519");
const auth: FacilitatorAuth = { type: "cdp", keyId: "organizations/a/apiKeys/b", privateKey };

const chain = await forFile(startTestChain());
const facilitator = await forFile(startFacilitator(chain));
const config = { facilitator: { remote: `${facilitator.url}/x402`, auth } };
const service = await forFile(startService({ chain, config }));
const url = `${service.url}/test/basic`;

test("A remote facilitator gets the 402's resource and extensions for its listing, as a stock client echoes them", async () => {
  const client = new x402Client().register("eip155:*", new ExactEvmScheme(await newPayer(chain)));
  const challenge = challengeOf(await post(url));
  const answer = await wrapFetchWithPayment(fetch, client)(url, { method: "POST" });
  expect(answer.status).toBe(200);
  const { bazaar } = challenge.extensions as { readonly bazaar: { readonly info: object } };
  const { paymentPayload, paymentRequirements } = facilitator.asked().body;
  expect(paymentPayload.resource).toEqual(challenge.resource);
  expect(paymentPayload.extensions).toMatchObject({ bazaar });
  expect(paymentRequirements).toEqual(challenge.accepts[0]);
  const listed = extractDiscoveryInfo(paymentPayload, paymentRequirements);
  expect(listed).toMatchObject({
    resourceUrl: url,
    description: challenge.resource.description,
    method: "POST",
    discoveryInfo: bazaar.info,
  });
});

test("The client's own extensions are passed on unchanged, and none are added", async () => {
  const own = { bazaar: { info: { x: [1, null, "é"] }, schema: {} }, "x-own": { deep: { y: 2 } } };
  const payer = await newPayer(chain);
  const header = { "PAYMENT-SIGNATURE": await signedWith(payer, own) };
  expect((await post(url, header)).status).toBe(200);
  expect(facilitator.asked().body.paymentPayload.extensions).toEqual(own);
  expect((await post(url, v1(await signPayment(payer)))).status).toBe(200);
  expect(facilitator.asked().body.paymentPayload).not.toHaveProperty("extensions");
});

async function signedWith(payer: Awaited<ReturnType<typeof newPayer>>, extensions: object): Promise<string> {
  const { authorization, signature } = await signPayment(payer);
  const texts = Object.fromEntries(Object.entries(authorization).map(([name, value]) => [name, String(value)]));
  const payload = { x402Version: 2, payload: { authorization: texts, signature }, extensions };
  return Buffer.from(JSON.stringify(payload)).toString("base64");
}

test("A Coinbase Developer Platform token is limited to this request and to two minutes", async () => {
  expect((await post(url, v1(await signPayment(await newPayer(chain))))).status).toBe(200);
  const [scheme, token = ""] = facilitator.asked().headers.authorization?.split(" ") ?? [];
  expect(scheme).toBe("Bearer");
  const { payload, protectedHeader } = await jwtVerify(token, createPublicKey(privateKey), { issuer: "cdp" });
  const endpoint = new URL(`${facilitator.url}/x402/settle`);
  expect(payload).toMatchObject({ sub: auth.keyId, uris: [`POST ${endpoint.host}/x402/settle`] });
  expect(Number(payload.exp) - Number(payload.nbf)).toBe(120);
  expect(protectedHeader).toMatchObject({
    alg: "EdDSA",
    kid: auth.keyId,
    typ: "JWT",
    nonce: expect.stringMatching(/^[0-9a-f]{32}$/),
  });
});

test("A configured header is sent as the login, and a rejected login names the variable to check", async () => {
  const settler = createRemoteSettler(facilitator.url, { type: "header", name: "x-api-key", value: "k3y" });
  const signed = await signPayment(await newPayer(chain));
  const payment = { network: BASE.id, ...signed, resource: { url, description: "", mimeType: "application/json" } };
  facilitator.treat(signed, (_, answer) => respond(answer, 401, {}));
  await expect(settler.submit(payment)).rejects.toThrow("status 401; check FACILITATOR_AUTH");
  expect(facilitator.asked().headers["x-api-key"]).toBe("k3y");
  expect(service.logged.filter((line) => line.includes("k3y") || line.includes("Bearer"))).toEqual([]);
});
