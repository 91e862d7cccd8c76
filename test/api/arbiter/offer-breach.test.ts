import { generateKeyPairSync, sign } from "node:crypto";
import fc from "fast-check";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { claimSchema } from "../../../api/arbiter/claim.ts";
import { NETWORKS } from "../../../api/platform/networks.ts";
import { didDocument, didWeb } from "../../../api/platform/signing/did.ts";
import { NETWORKS_V2 } from "../../../packages/verifier/src/verdict/v2/offer-breach.ts";
import { KEY } from "../../packages/verifier/samples.ts";
import {
  BASE,
  byHost,
  type Case,
  DEAR,
  ESCALATED,
  evidenceOn,
  HEADER,
  NOW,
  OFFER,
  OTHER,
  offered,
  paidBy,
  payTo,
  RECEIPT,
  REFUNDED,
  RELEASED,
  receipted,
  SEPOLIA,
  SHOP,
  SHOP_DID,
  showDocument,
  TX,
  verdictLines,
} from "../../support/arbiter/breach.ts";
import { sends } from "../../support/arbiter/rows.ts";
import type { SignedTerms, Terms } from "../../support/arbiter/signed-terms.ts";
import { CLAIMS, factsNamed, judged, startSite } from "../../support/arbiter/site.ts";

const site = await startSite();
afterAll(() => site.close());
beforeEach(() => showDocument(site));

/** No transaction is read until the offer and the receipt are known to be the seller's. */
const UNREAD = ["settlement unknown not_read", "time unknown not_read"];

test.each(REFUNDED)("A proven breach is refunded: %s", async (_, given, lines) => {
  const evidence = await evidenceOn(site, await given());
  expect(verdictLines(evidence)).toEqual(["refund", ...lines]);
  expect(evidence.transfer).toMatchObject({ network: BASE.id, transaction: TX, logIndex: 7 });
});

test.each(RELEASED)("A payment as offered is released: %s", async (_, given) => {
  const evidence = await evidenceOn(site, await given());
  expect([evidence.verdict, ...judged(evidence).filter((line) => !/ true /.test(line))]).toEqual(["release"]);
  expect(evidence.transfer).toMatchObject({ network: BASE.id, transaction: TX, logIndex: 7 });
});

describe("unproven breach", () => {
  test.each(ESCALATED)("%s: the claim escalates and decides no transfer", async (_, given, lines) => {
    const evidence = await evidenceOn(site, await given());
    const unread = factsNamed(evidence, "transaction").length === 0 ? UNREAD : [];
    expect(verdictLines(evidence)).toEqual(["escalate", ...lines, ...unread]);
    expect(evidence.transfer).toBeUndefined();
  });

  test("A transfer that another verdict has decided escalates and names that verdict", async () => {
    const { transfer } = await evidenceOn(site, { chain: { [BASE.id]: paidBy(DEAR) } });
    const verdict = "0123456789abcdef0123456789abcdef";
    const again = transfer?.decidedBefore(verdict);
    expect(again && verdictLines(again)).toEqual(["escalate", "settlement unknown decided_before"]);
    expect(again?.transfer).toBeUndefined();
    expect(again && factsNamed(again, "decided_before")).toEqual([{ fact: "decided_before", verdict }]);
  });
});

test("Version 2 lists the service's networks", () => {
  const known = Object.values(NETWORKS).map(({ id, isTest }) => [id, { isTest }]);
  expect(NETWORKS_V2).toEqual(Object.fromEntries(known));
});

describe("forged offers and receipts", () => {
  /** The signed object with one byte of its JSON replaced, or null if the result is not JSON. */
  function changed(signed: SignedTerms, at: number, byte: number): SignedTerms | null {
    const bytes = Buffer.from(JSON.stringify(signed));
    bytes[at % bytes.length] = byte;
    try {
      return JSON.parse(bytes.toString());
    } catch {
      return null;
    }
  }

  /** The verdict, or `refused` if the claim is not accepted at all. */
  const verdictOn = (given: Case): Promise<string> =>
    evidenceOn(site, given).then(
      ({ verdict }) => verdict,
      () => "refused",
    );

  const anyByte = fc.record({
    of: fc.constantFrom("offer" as const, "receipt" as const),
    at: fc.nat({ max: 2_000 }),
    byte: fc.integer({ min: 0x20, max: 0x7e }),
  });

  /** Changes one byte of the offer or the receipt of a case. */
  async function withByte(given: Case, { of, at, byte }: { of: "offer" | "receipt"; at: number; byte: number }) {
    const whole = { offer: given.offer ?? (await offered()), receipt: given.receipt ?? (await receipted()) };
    const other = changed(whole[of], at, byte);
    return other && { ...given, ...whole, [of]: other };
  }

  const ALL_BREACHED = {
    [BASE.id]: paidBy(DEAR),
    [SEPOLIA.id]: { outcome: "not_found" },
  } as const satisfies Case["chain"];

  test("Changing one byte of an offer or a receipt never turns an escalate into a refund", async () => {
    const cases = await Promise.all(
      ESCALATED.filter(([title]) => !/^no receipt|own offer|the other format/.test(title)).map(([, given]) => given()),
    );
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: cases.length - 1 }), anyByte, async (number, change) => {
        const given = await withByte(cases[number] as Case, change);
        if (given !== null) expect(await verdictOn(given)).not.toBe("refund");
      }),
      { numRuns: 300 },
    );
  });

  test("Changing one byte never turns a release into a refund, in either format", async () => {
    const cases: readonly Case[] = [{}, { offer: byHost(), receipt: byHost(RECEIPT) }];
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...cases), anyByte, async (one, change) => {
        const given = await withByte(one, change);
        if (given !== null) expect(await verdictOn(given)).not.toBe("refund");
      }),
      { numRuns: 100 },
    );
  });

  test("Changing one signed byte of a true breach leaves no decision", async () => {
    const chain = ALL_BREACHED;
    const cases: readonly Case[] = [
      { offer: await offered(), receipt: await receipted(), chain },
      { offer: byHost(), receipt: byHost(RECEIPT), chain },
    ];
    for (const one of cases) expect(await verdictOn(one)).toBe("refund");
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...cases), anyByte, async (one, change) => {
        const given = await withByte(one, change);
        if (given === null || same(given[change.of], one[change.of])) return;
        expect(["refused", "escalate"]).toContain(await verdictOn(given as Case));
      }),
      { numRuns: 200 },
    );
  });

  /**
   * Returns whether both are the same signed object. The case of hex digits and the unused trailing bits of base64url
   * are not signed.
   */
  const same = (one: Case["receipt"], other: Case["receipt"]): boolean => canonical(one) === canonical(other);

  function canonical(signed: Case["receipt"]): string {
    const { signature = "" } = signed ?? {};
    const [header, payload, bytes] = signature.split(".");
    return bytes === undefined
      ? JSON.stringify({ ...signed, signature: signature.toLowerCase() })
      : JSON.stringify({ ...signed, signature: [header, payload, Buffer.from(bytes, "base64url").toString("hex")] });
  }
});

afterAll(() => site.close());
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
