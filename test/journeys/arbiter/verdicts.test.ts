import canonicalize from "canonicalize";
import { keccak256, recoverTypedDataAddress, toHex } from "viem";
import { privateKeyToAddress } from "viem/accounts";
import { describe, expect, test } from "vitest";
import type { verdictDocument } from "../../../api/arbiter/document.ts";
import { parseKeySet, verifyDocument } from "../../../packages/verifier/src/index.ts";
import { sha256 } from "../../support/arbiter/rows.ts";
import { buyVerdict, type Claim, checkRun, handIn, recordOf, startArbiterScene } from "../../support/arbiter/scene.ts";
import { forFile } from "../../support/for-file.ts";
import { settlements } from "../../support/payments/on-chain.ts";
import { PRICES } from "../../support/payments/prices.ts";
import { send, v1 } from "../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";
import { ARBITER_KEY } from "../../support/service/environment.ts";

type VerdictDocument = ReturnType<typeof verdictDocument>;

const scene = await forFile(startArbiterScene());

const MEMBERS = [
  "@context",
  "attestation",
  "category",
  "claimant",
  "conditions_sha256",
  "deal_ref",
  "facts",
  "id",
  "issued_at",
  "issuer",
  "policy_version",
  "proof",
  "timeline",
  "type",
  "verdict",
  "verdict_url",
];
const PARTIES = {
  payer: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
  payee: "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC",
};

const reportOn = async (text: string) => {
  const keys = await parseKeySet((await send(`${scene.service.url}/.well-known/jwks.json`)).text);
  return verifyDocument(text, { keys, issuer: scene.service.url });
};

/** The attestation's signer, recovered from the document alone, once its message matches the document. */
async function attestor({ attestation, ...document }: VerdictDocument): Promise<string> {
  const { domain, types, primaryType, message, signature, signer } = attestation;
  expect({ domain, message }).toEqual({
    domain: { name: "Agent Payment Trust Arbiter", version: "1", chainId: 8453 },
    message: {
      id: document.id,
      outcome: document.verdict,
      conditionsSha256: `0x${document.conditions_sha256}`,
      dealRefHash: keccak256(toHex(document.deal_ref ?? "")),
      issuedAt: Math.floor(Date.parse(document.issued_at) / 1000),
    },
  });
  const signed = { domain, types, primaryType, message: { ...message, issuedAt: BigInt(message.issuedAt) } };
  expect((await recoverTypedDataAddress({ ...signed, signature })).toLowerCase()).toBe(signer);
  const overview = (await send(`${scene.service.url}/arbiter`)).body.attestation;
  expect(overview).toMatchObject({ signer, domain, types, primaryType });
  return signer;
}

describe.each([
  ["http-delivery", "refund"],
  ["payload-hash", "release"],
  ["ci-status", "escalate"],
] as const)("%s with the outcome %s", (category, verdict) => {
  test("A stock client buys the verdict, and the response is the signed public record, which a retry repeats", async () => {
    const { service, chain } = scene;
    const found = scene.claims.find((one) => one.category === category && one.verdict === verdict);
    const claim = { category, conditions: found?.conditions ?? {}, deal_ref: `deal ${category} ${verdict}` };
    const payer = await newPayer(chain);
    const { answer, headers } = await buyVerdict(service, payer, claim);
    expect({ status: answer.status, ...answer.body }).toMatchObject({ status: 200, verdict });

    const document = answer.body as unknown as VerdictDocument;
    expect(Object.keys(document).sort()).toEqual(MEMBERS);
    expect(document).toMatchObject({
      type: "ArbiterVerdict",
      id: expect.stringMatching(/^[0-9a-f]{32}$/),
      category,
      conditions_sha256: sha256(canonicalize({ category, conditions: claim.conditions }) ?? ""),
      deal_ref: claim.deal_ref,
      policy_version: category === "payload-hash" ? 1 : 2,
      verdict_url: `${service.url}/arbiter/verdict/${document.id}`,
    });
    expect(document.facts.some(({ fact }) => fact !== "condition")).toBe(true);
    expect(await attestor(document)).toBe(privateKeyToAddress(ARBITER_KEY).toLowerCase());
    expect(await reportOn(answer.text)).toMatchObject({ valid: true, freshness: { state: "no_expiry" } });
    const forged = answer.text.replace(`"verdict":"${verdict}"`, '"verdict":"approve"');
    expect(await reportOn(forged)).toMatchObject({ valid: false, signature: { code: "jws_mismatch" } });

    for (const accept of ["application/json", "*/*"])
      expect((await send(document.verdict_url, { headers: { accept } })).text).toBe(answer.text);
    const asked = await send(`${document.verdict_url}?format=json`, { headers: { accept: "text/html" } });
    expect([asked.text, asked.headers.get("content-type")]).toEqual([answer.text, "application/json"]);
    const page = await send(document.verdict_url, { headers: { accept: "text/html" } });
    expect(page.headers.get("content-type")).toMatch(/^text\/html/);
    expect(page.text).toContain(`<h1>${verdict[0]?.toUpperCase()}${verdict.slice(1)}</h1>`);
    expect(page.text).toContain(document.conditions_sha256);

    const again = await handIn(service, claim, headers);
    expect([again.status, again.text, again.headers.get("x-idempotent-replay")]).toEqual([200, answer.text, "true"]);
    expect(await settlements(chain, payer.address)).toMatchObject([{ value: PRICES.verdict }]);
  });
});

describe("verdicts", () => {
  test("Two verdicts bought for one claim have different IDs and the same facts", async () => {
    const { service, chain, claims } = scene;
    const payer = await newPayer(chain);
    const [{ category = "", conditions = {} } = {}] = claims;
    const [one, other] = [
      (await buyVerdict(service, payer, { category, conditions })).answer.body as unknown as VerdictDocument,
      (await handIn(service, { category, conditions }, v1(await signPayment(payer))))
        .body as unknown as VerdictDocument,
    ];
    expect(other.id).not.toBe(one.id);
    expect(other.deal_ref).toBeNull();
    expect([other.verdict, other.facts, other.conditions_sha256]).toEqual([
      one.verdict,
      one.facts,
      one.conditions_sha256,
    ]);
    expect(await settlements(chain, payer.address)).toHaveLength(2);
  });

  test("Parties named only by the claimant are marked as such on the record, the page, and the list", async () => {
    const buyer = await newPayer(scene.chain);
    const wallet = buyer.address.toLowerCase();
    const { answer } = await buyVerdict(scene.service, buyer, { ...payloadClaim("x"), parties: PARTIES });
    const { id, verdict_url: url } = answer.body as unknown as VerdictDocument;
    expect(answer.body).toMatchObject({ claimant: wallet, parties_named_by: "claimant" });
    const { text } = await send(url, { headers: { accept: "text/html" } });
    const page = text.replace(/<[^>]*>/g, "").replace(/\s+/g, " ");
    expect(page).toContain(`Claimed by${wallet} not a party to this deal`);
    expect(page.match(/named by the claimant; has not signed/g)).toHaveLength(2);
    const { body } = await send(`${scene.service.url}/arbiter/log`);
    expect(body.verdicts).toContainEqual(expect.objectContaining({ id, claimant: wallet }));

    const own = { ...payloadClaim("y"), parties: { payer: buyer.address, payee: PARTIES.payee } };
    const bought = await buyVerdict(scene.service, buyer, own);
    const its = await send((bought.answer.body as unknown as VerdictDocument).verdict_url, {
      headers: { accept: "text/html" },
    });
    expect(its.text.match(/named by the claimant; has not signed/g)).toHaveLength(1);
    expect(its.text).not.toContain("not a party to this deal");
  });

  test("Parties are shown in lower case, and a deal_ref of 120 characters is echoed", async () => {
    const claim = { ...payloadClaim("ü"), deal_ref: "ü".repeat(120), parties: PARTIES };
    const { answer } = await buyVerdict(scene.service, await newPayer(scene.chain), claim);
    expect(answer.body).toMatchObject({
      verdict: "release",
      deal_ref: claim.deal_ref,
      parties: { payer: { wallet: PARTIES.payer.toLowerCase() }, payee: { wallet: PARTIES.payee.toLowerCase() } },
    });
    expect(Object.keys(answer.body).sort()).toEqual([...MEMBERS, "parties", "parties_named_by"].sort());
    await attestor(answer.body as unknown as VerdictDocument);
  });

  test("A verdict on 1,000 check runs with long names is returned and stored in full", async () => {
    const name = `${"ünïcode ".repeat(40)}`;
    scene.runs.set(
      "octo/huge",
      Array.from({ length: 1_000 }, (_, id) => checkRun(10_000_000_000 + id, { name })),
    );
    const claim = { category: "ci-status", conditions: { repo: "octo/huge", commit_sha: "C0".repeat(20) } };
    const { answer, headers } = await buyVerdict(scene.service, await newPayer(scene.chain), claim);
    expect({ status: answer.status, ...answer.body }).toMatchObject({ status: 200, verdict: "release" });
    // In addition to the runs: their list, the suite, its list, the list of statuses, and two conditions.
    expect((answer.body.facts as unknown[]).length).toBe(1_006);
    expect(answer.text.length).toBeGreaterThan(256 * 1024);
    expect((await handIn(scene.service, claim, headers)).text).toBe(answer.text);
    expect((await recordOf(String(answer.body.verdict_url))).text).toBe(answer.text);
    expect((await reportOn(answer.text)).valid).toBe(true);
    const page = await send(String(answer.body.verdict_url), { headers: { accept: "text/html" } });
    expect(page.status).toBe(200);
  });
});

const payloadClaim = (text: string): Claim => ({
  category: "payload-hash",
  conditions: { payload_text: text, expected_sha256: sha256(text) },
});
