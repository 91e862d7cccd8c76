import type { PaymentRequired } from "@x402/core/types";
import {
  decodeSignedOffers,
  extractReceiptFromResponse,
  type JWSSignedOffer,
  type SignedOffer,
  verifyOfferSignatureJWS,
  verifyReceiptMatchesOffer,
  verifyReceiptSignatureJWS,
} from "@x402/extensions/offer-receipt";
import { expect, test } from "vitest";
import { forFile } from "../../support/for-file.ts";
import { type Answer, challengeOf, post, v1, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";
import { mountedRoutes, startScene } from "./scene.ts";

const { service, chain } = await forFile(startScene());

const offersOf = ({ extensions }: Pick<PaymentRequired, "extensions">): readonly SignedOffer[] =>
  (extensions as { "offer-receipt": { info: { offers: SignedOffer[] } } })["offer-receipt"].info.offers;

const basic = `${service.url}/test/basic`;

/** Every 402 of the service, by path. */
async function unpaid(
  at = service.url,
): Promise<readonly (readonly [path: string, header: string, challenge: PaymentRequired, body: Answer["body"]])[]> {
  const paths = mountedRoutes(service).flatMap((route) => (route.startsWith("POST ") ? [route.slice(5)] : []));
  const found = [];
  for (const path of new Set(paths)) {
    const answer = await post(at + path);
    if (answer.status !== 402) continue;
    found.push([path, answer.headers.get("payment-required") ?? "", challengeOf(answer), answer.body] as const);
  }
  return found;
}

test("Every 402 has a signed offer for each of its terms, and a stock verifier attributes it to the service", async () => {
  const asked = await unpaid();
  expect(asked).toHaveLength(18);
  for (const [path, , { accepts, resource, extensions }, body] of asked) {
    // Offers too long for the header are in the body.
    const signed = extensions?.["offer-receipt"] === undefined ? body : { extensions };
    const offers = offersOf(signed) as readonly JWSSignedOffer[];
    expect(offers.map(({ format, acceptIndex }) => [format, acceptIndex])).toEqual(accepts.map((_, n) => ["jws", n]));
    for (const [index, { scheme, network, asset, payTo, amount }] of accepts.entries()) {
      // Looks the key up in the host's did:web document.
      const { validUntil, ...offer } = await verifyOfferSignatureJWS(offers[index] as JWSSignedOffer);
      const resourceUrl = `${service.url}${path}`;
      expect(resource?.url).toBe(resourceUrl);
      expect(offer).toEqual({ version: 1, resourceUrl, scheme, network, asset, payTo, amount });
      // Five minutes, rounded up to the end of the minute.
      expect(validUntil % 60).toBe(0);
      expect(validUntil).toBeGreaterThan(Date.now() / 1000 + 290);
    }
  }
});

/** The receipt of a paid response, verified by the stock library. */
async function receiptOf(answer: Answer) {
  const receipt = extractReceiptFromResponse(new Response(null, { headers: answer.headers }));
  if (receipt?.format !== "jws") throw new Error("no receipt");
  return { receipt, payload: await verifyReceiptSignatureJWS(receipt) };
}

test.each([
  ["version 1", v1],
  ["version 2", v2],
] as const)("A paid response and its replay have a receipt that matches the offer (%s)", async (_, headers) => {
  const payer = await newPayer(chain);
  const [offer] = decodeSignedOffers([...offersOf(challengeOf(await post(basic)))]);
  const signed = await signPayment(payer);
  const paid = await post(basic, headers(signed));
  const replay = await post(basic, headers(signed));
  expect([paid.status, replay.status]).toEqual([200, 200]);
  const { transaction } = paid.body.settlement as { transaction: string };
  expect(replay.headers.get("payment-response")).toBe(paid.headers.get("payment-response"));
  for (const answer of [paid, replay]) {
    const { receipt, payload } = await receiptOf(answer);
    expect(payload).toEqual({
      version: 1,
      network: "eip155:8453",
      resourceUrl: basic,
      payer: payer.address.toLowerCase(),
      issuedAt: expect.any(Number),
      transaction,
    });
    expect(Math.abs(payload.issuedAt - Date.now() / 1000)).toBeLessThan(60);
    expect(offer && verifyReceiptMatchesOffer(receipt, offer, [payer.address])).toBe(true);
  }
});

test("A rejected payment has no receipt, and its 402 makes a new offer", async () => {
  const payer = await newPayer(chain, 0n);
  const refused = await post(basic, v2(await signPayment(payer)));
  expect(refused.status).toBe(402);
  expect(refused.headers.get("payment-response")).toBeNull();
  expect(offersOf(challengeOf(refused))).toHaveLength(1);
});
