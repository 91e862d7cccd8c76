import { generateKeyPairSync, sign } from "node:crypto";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { claimSchema } from "../../../api/arbiter/claim.ts";
import { didDocument, didWeb } from "../../../api/platform/signing/did.ts";
import { KEY } from "../../packages/verifier/samples.ts";
import {
  BASE,
  byHost,
  type Case,
  DEAR,
  evidenceOn,
  HEADER,
  NOW,
  OFFER,
  OTHER,
  offered,
  paidBy,
  payTo,
  RECEIPT,
  receipted,
  SHOP,
  SHOP_DID,
  showDocument,
  TX,
  verdictLines,
} from "../../support/arbiter/breach.ts";
import { sends } from "../../support/arbiter/rows.ts";
import type { SignedTerms, Terms } from "../../support/arbiter/signed-terms.ts";
import { CLAIMS, factsNamed, startSite } from "../../support/arbiter/site.ts";

const site = await startSite();
afterAll(() => site.close());
beforeEach(() => showDocument(site));

const decided = async (given: Case) => verdictLines(await evidenceOn(site, given));

describe("seller's DID document", () => {
  const dear = async (): Promise<Case> => ({
    offer: byHost(),
    receipt: byHost(RECEIPT),
    chain: { [BASE.id]: paidBy(DEAR) },
  });
  const NO_DOCUMENT = ["offer unknown no_document", "receipt unknown no_document"];
  const UNREAD = ["settlement unknown not_read", "time unknown not_read"];

  test("The document is read once over TLS, by name, and published with its hash and the key", async () => {
    const evidence = await evidenceOn(site, await dear());
    expect(site.requests.map(({ path, host }) => [path, host])).toEqual([["/.well-known/did.json", "shop.example"]]);
    expect(factsNamed(evidence, "did_document")).toEqual([
      {
        fact: "did_document",
        url: `${SHOP}/.well-known/did.json`,
        status: 200,
        sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
        failure: null,
      },
    ]);
    const key = { kty: "OKP", crv: "Ed25519", x: KEY.publicJwk.x };
    expect(factsNamed(evidence, "signature").map((one) => one.key)).toEqual([key, key]);
  });

  test.each<[string, ReturnType<typeof sends>, number]>([
    ["a redirect, even to itself", sends(302, { location: "/.well-known/did.json" }), 1],
    ["not there", sends(404), 1],
    ["too long", sends(200, {}, "x".repeat(64 * 1024 + 1)), 1],
    ["no JSON", sends(200, {}, "haiku"), 1],
    ["a server that fails twice", sends(500), 2],
  ])("A document that cannot be read escalates: %s", async (_, serve, asked) => {
    site.handlers.set("/.well-known/did.json", serve);
    expect(await decided(await dear())).toEqual(["escalate", ...NO_DOCUMENT, ...UNREAD]);
    expect(site.requests).toHaveLength(asked);
  });

  test("Another DID's document lists no key of this one", async () => {
    const document = JSON.stringify(didDocument(didWeb("https://evil.example"), [KEY.publicJwk]));
    site.handlers.set("/.well-known/did.json", sends(200, {}, document));
    expect(await decided(await dear())).toContain("offer unknown not_listed");
  });

  test.each([
    ["P-256", "ES256"],
    ["secp256k1", "ES256K"],
  ])("A %s key is accepted", async (namedCurve, alg) => {
    const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve });
    const kid = `${SHOP_DID}#p`;
    const jwk = publicKey.export({ format: "jwk" });
    const method = { id: kid, type: "JsonWebKey", controller: SHOP_DID, publicKeyJwk: jwk };
    site.handlers.set(
      "/.well-known/did.json",
      sends(200, {}, JSON.stringify({ id: SHOP_DID, verificationMethod: [method] })),
    );
    const by = (payload: Terms): SignedTerms => {
      const [header, body] = [{ alg, kid }, payload].map((one) =>
        Buffer.from(JSON.stringify(one)).toString("base64url"),
      );
      const signature = sign("sha256", Buffer.from(`${header}.${body}`), {
        key: privateKey,
        dsaEncoding: "ieee-p1363",
      });
      return { format: "jws", signature: `${header}.${body}.${signature.toString("base64url")}` };
    };
    expect(await decided({ offer: by(OFFER), receipt: by(RECEIPT) })).toEqual(["release"]);
  });

  test("A DID with a path signs for URLs under that path and for no others", async () => {
    const id = `${SHOP_DID}:shops:a`;
    const kid = `${id}#k`;
    const method = { id: kid, type: "JsonWebKey", controller: id, publicKeyJwk: KEY.publicJwk };
    site.handlers.set("/shops/a/did.json", sends(200, {}, JSON.stringify({ id, verificationMethod: [method] })));
    const signed = (path: string) => {
      const [at, header] = [{ resourceUrl: `${SHOP}${path}` }, { alg: "EdDSA", kid }];
      return { offer: byHost({ ...OFFER, ...at }, header), receipt: byHost({ ...RECEIPT, ...at }, header) };
    };
    expect(await decided(signed("/shops/a/haiku"))).toEqual(["release"]);
    expect(await decided(signed("/shops/b/haiku"))).toContain("offer unknown other_host");
  });

  test.each([
    ["a non-public name", "https://shop.internal"],
    ["a name that does not resolve", "https://nowhere.example"],
    ["a cloud's metadata service, by name", "https://metadata.google.internal"],
  ])("A DID document at %s is not fetched", async (_, origin) => {
    const kid = `${didWeb(origin)}#key`;
    const at = { resourceUrl: `${origin}/haiku` };
    const given = {
      offer: byHost({ ...OFFER, ...at }, { alg: "EdDSA", kid }),
      receipt: byHost({ ...RECEIPT, ...at }, { alg: "EdDSA", kid }),
    };
    expect((await decided(given))[1]).toBe("offer unknown no_document");
    expect(site.requests).toEqual([]);
  });
});

describe("malformed and unacceptable claims", () => {
  const issuesOf = async (conditions: object) =>
    claimSchema({ ...CLAIMS, now: () => NOW })
      .safeParse({ category: "offer-breach", conditions })
      .error?.issues.map(({ code, path, message, ...more }) => [
        code === "custom" ? `rule ${(more as { params?: { rule?: number } }).params?.rule}` : "malformed",
        path.join("."),
        message,
      ]);
  const settlement = { network: BASE.id, transaction: TX };

  test.each<[string, () => Promise<object>, [string, string, RegExp]]>([
    [
      "JWS that requires extensions",
      async () => ({ offer: byHost(OFFER, { ...HEADER, crit: ["b64"] }), settlement }),
      ["malformed", "conditions.offer", /requires extensions/],
    ],
    [
      "JWS without a key",
      async () => ({ offer: byHost(OFFER, { alg: "EdDSA" }), settlement }),
      ["malformed", "conditions.offer", /names no key/],
    ],
    [
      "receipt that is an offer",
      async () => ({ offer: await offered(), receipt: await offered(), settlement }),
      ["malformed", "conditions.receipt", /./],
    ],
    [
      "fractional validUntil",
      async () => ({ offer: { ...(await offered()), payload: { ...OFFER, validUntil: 1.5 } }, settlement }),
      ["malformed", "conditions.offer", /validUntil is 1.5/],
    ],
    [
      "truncated transaction hash",
      async () => ({ offer: await offered(), settlement: { ...settlement, transaction: "0xab" } }),
      ["malformed", "conditions.settlement.transaction", /64 hex digits/],
    ],
    [
      "network given by its short name",
      async () => ({ offer: await offered(), settlement: { ...settlement, network: "base" } }),
      ["malformed", "conditions.settlement.network", /CAIP-2/],
    ],
    [
      "screenshot as the claimant's own evidence",
      async () => ({ offer: await offered(), settlement, screenshot: "x" }),
      ["rule 3", "conditions.screenshot", /own evidence/],
    ],
    [
      "resource on the service's own host",
      async () => ({ offer: await offered({ resourceUrl: "https://trust.example/test/basic" }), settlement }),
      ["rule 7", "conditions.offer", /own host/],
    ],
  ])("A claim with this fault is not accepted: %s", async (_, conditions, [kind, path, message]) => {
    expect(await issuesOf(await conditions())).toEqual([[kind, path, expect.stringMatching(message)]]);
  });

  test("A claim is accepted only from the receipt's payer, and never from the payee", async () => {
    await expect(evidenceOn(site, { claimant: OTHER })).rejects.toThrow(/only the payer can claim/);
    const own = { receipt: await receipted({ payer: payTo }), claimant: payTo };
    await expect(evidenceOn(site, own)).rejects.toThrow(/a different wallet/);
  });
});
