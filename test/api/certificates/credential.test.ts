import type { JSONWebKeySet } from "jose";
import { afterEach, describe, expect, test } from "vitest";
import { parseKeySet } from "../../../packages/verifier/src/key-set.ts";
import { verifyDocument } from "../../../packages/verifier/src/verify-document.ts";
import { CAPABILITIES } from "../../../packages/verifier/src/vocabulary.ts";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { type DidDocument, joseAccepts, type SignedDocument, w3cAccepts } from "../../packages/verifier/independent.ts";
import { boardSeeder } from "../../support/board.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { PRICES } from "../../support/payments/prices.ts";
import { post, send, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";
import { startService } from "../../support/service/service.ts";

const DAY_MS = 86_400_000;
const UNKNOWN = "0x00000000000000000000000000000000000000aa";

/** The service's clock, or null for the real time. */
let clock: Date | null = null;
const now = () => clock ?? new Date();

const chain = await forFile(startTestChain());
const service = await forFile(startService({ chain, now }));
const seeder = await forFile(boardSeeder(service.database));
const lower = (address: string) => address.toLowerCase() as `0x${string}`;
afterEach(() => {
  clock = null;
});

interface Subject {
  readonly tested: boolean;
  readonly verified: boolean;
  readonly capabilities: Record<string, object>;
  readonly conformance: readonly Record<string, unknown>[];
}

const fetchCredential = (wallet: string, accept = "*/*") =>
  send(`${service.url}/credential/${wallet}`, { headers: { accept } });
const wellKnown = async (name: string) => send(`${service.url}/.well-known/${name}`);
const subjectOf = (body: Record<string, unknown>) => body.credentialSubject as Subject;

/**
 * Returns the wallet's credential after our verifier and two independent ones accepted it with the service's published
 * keys.
 */
async function credentialOf(wallet: string) {
  const { status, text, body } = await fetchCredential(wallet);
  expect(status).toBe(200);
  const jwks = await wellKnown("jwks.json");
  expect(await joseAccepts(body as unknown as SignedDocument, jwks.body as unknown as JSONWebKeySet)).toBe(true);
  expect(await w3cAccepts(body, (await wellKnown("did.json")).body as unknown as DidDocument)).toBe(true);
  const expected = { keys: await parseKeySet(jwks.text), issuer: service.url, at: now() };
  expect(await verifyDocument(text, expected)).toMatchObject({ valid: true });
  return body;
}

/** Buys one test of the product at the service's current time. */
async function certify(
  payer: Awaited<ReturnType<typeof newPayer>>,
  product: "basic" | "suite",
  validForSeconds = 120,
): Promise<Record<string, unknown>> {
  const validBefore = BigInt(Math.floor(now().getTime() / 1000) + validForSeconds);
  const signed = await signPayment(payer, { value: PRICES[product], validBefore });
  const { status, body } = await post(`${service.url}/test/${product}`, v2(signed));
  expect(status).toBe(200);
  return body;
}

/** Returns the certificate after moving its dates back by ten days. */
async function tenDaysOlder(certificate: Record<string, unknown>): Promise<Record<string, unknown>> {
  const older = "issued_at = issued_at - interval '10 days', valid_until = valid_until - interval '10 days'";
  await withClient(service.database.ownerUrl, (client) =>
    client.query(`ALTER TABLE certificate DISABLE TRIGGER permanent;
      UPDATE certificate SET ${older} WHERE id = '${certificate.id}';
      ALTER TABLE certificate ENABLE ALWAYS TRIGGER permanent`),
  );
  const before = (time: unknown) => new Date(Date.parse(String(time)) - 10 * DAY_MS).toISOString();
  return { ...certificate, issued_at: before(certificate.issued_at), valid_until: before(certificate.valid_until) };
}

describe("A credential", () => {
  test("The credential of an untested wallet states that, is signed, and has no end date", async () => {
    const body = await credentialOf(UNKNOWN);
    expect(body).toMatchObject({
      "@context": ["https://www.w3.org/ns/credentials/v2", "https://www.w3.org/ns/credentials/undefined-terms/v2"],
      id: `${service.url}/credential/${UNKNOWN}`,
      type: ["VerifiableCredential", "AgentPaymentCredential"],
      issuer: `did:web:localhost%3A${service.config.port}`,
      validFrom: expect.stringMatching(/^\d{4}-\d{2}-\d{2}T[\d:.]+Z$/),
      credentialSubject: {
        id: `did:pkh:eip155:8453:${UNKNOWN}`,
        wallet: UNKNOWN,
        tested: false,
        verified: false,
        conformance: [],
      },
    });
    expect(body).not.toHaveProperty("validUntil");
    expect(Object.keys(subjectOf(body).capabilities).sort()).toEqual([...CAPABILITIES].sort());
  });

  test("The credential of a tested wallet agrees with /verify and expires with the first certificate to expire", async () => {
    const payer = await newPayer(chain);
    const first = await tenDaysOlder(await certify(payer, "basic"));
    const second = await certify(payer, "suite");
    const body = await credentialOf(payer.address.toUpperCase().replace("0X", "0x"));
    expect(body.validUntil).toBe(first.valid_until);
    const { body: record } = await send(`${service.url}/verify?wallet=${payer.address}`);
    expect(subjectOf(body)).toMatchObject({ tested: true, verified: true, capabilities: record.capabilities });
    expect(subjectOf(body).conformance).toEqual(
      [second, first].map(({ id, product, cert_url, valid_until, issued_at }) => ({
        id,
        product,
        test_version: 1,
        result: "pass",
        level: "Conformant",
        fresh: true,
        expired: false,
        reversed: false,
        issued: issued_at,
        valid_until,
        cert_url,
      })),
    );
  });

  test("A credential includes a FAIL and expires no later than it", async () => {
    const payer = await newPayer(chain);
    const issuedAt = new Date(now().getTime() - 1_000);
    await seeder.add({ wallet: lower(payer.address), issuedAt, product: "scam", result: "fail" });
    const body = await credentialOf(payer.address);
    expect(body.validUntil).toBe(new Date(issuedAt.getTime() + 30 * DAY_MS).toISOString());
    expect(subjectOf(body)).toMatchObject({ tested: true, verified: false, conformance: [{ result: "fail" }] });
  });

  test("A wallet with only expired certificates gets a credential without an end date, and its earlier credential is expired", async () => {
    const payer = await newPayer(chain);
    await certify(payer, "basic");
    const { text } = await fetchCredential(payer.address);
    clock = new Date(Date.now() + 31 * DAY_MS);
    const body = await credentialOf(payer.address);
    expect(body).not.toHaveProperty("validUntil");
    expect(subjectOf(body)).toMatchObject({
      tested: true,
      verified: false,
      conformance: [{ fresh: false, expired: true }],
    });
    const keys = await parseKeySet((await wellKnown("jwks.json")).text);
    expect(await verifyDocument(text, { keys, at: clock })).toMatchObject({
      valid: false,
      signature: { valid: true },
      freshness: { state: "expired" },
    });
  });

  test("A credential is JSON, or application/vc on request, and caches must revalidate it", async () => {
    for (const accept of ["*/*", "application/json", "text/html", "application/vc+jwt"]) {
      const { headers } = await fetchCredential(UNKNOWN, accept);
      expect(headers.get("content-type")).toBe("application/json");
      expect([headers.get("cache-control"), headers.get("vary")]).toEqual(["no-cache", "Accept"]);
      expect(headers.get("access-control-allow-origin")).toBe("*");
    }
    for (const accept of ["application/vc", "application/vc;q=0.9, application/json;q=0.5"])
      expect((await fetchCredential(UNKNOWN, accept)).headers.get("content-type")).toBe("application/vc");
  });

  test.each([`${UNKNOWN}0`, "%00", UNKNOWN.slice(2)])(
    "A credential for %s gets 400 because it is not a wallet",
    async (wallet) => expectProblem(await fetchCredential(wallet), 400, "malformed_request"),
  );
});
