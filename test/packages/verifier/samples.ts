import { validUntil } from "../../../api/certificates/certificate.ts";
import { credential } from "../../../api/certificates/issue.ts";
import { type VerificationFacts, verificationRecord } from "../../../api/certificates/verification.ts";
import { didDocument, didWeb } from "../../../api/platform/signing/did.ts";
import { createSigner, type Unsigned } from "../../../api/platform/signing/document.ts";
import { signingKey } from "../../../api/platform/signing/keys.ts";
import { SCORE_PRICES } from "../../../api/score/request.ts";
import { parseKeySet } from "../../../packages/verifier/src/key-set.ts";
import { FAILING, PASSING, SAMPLE_NOW } from "../../support/certificates/samples.ts";

export { SAMPLE_NOW };
export const BASE_URL = "https://trust.example";
export const ISSUER = didWeb(BASE_URL);
export const KEY = await signingKey(Buffer.alloc(32, 7));
export const STRANGER = await signingKey(Buffer.alloc(32, 8));
export const JWKS = { keys: [{ ...KEY.publicJwk }] };
export const DID = didDocument(ISSUER, [KEY.publicJwk]);
export const KEYS = await parseKeySet(JSON.stringify(JWKS));
export const SIGNER = createSigner(KEY, ISSUER);

const issued = (time: string) => ({ issuedAt: new Date(time), validUntil: validUntil(new Date(time)) });

/** A wallet with a PASS and a FAIL that both count, and an expired PASS. */
const FACTS = {
  wallet: PASSING.wallet,
  activity: null,
  certificates: [
    { ...FAILING, product: "scam" },
    { ...PASSING, product: "basic", ...issued("2026-11-20T08:00:00.000Z") },
    { ...PASSING, id: "00112233aabbccdd", ...issued("2026-09-01T08:00:00.000Z") },
  ],
} satisfies VerificationFacts;

/** The credential of the samples' wallet with these certificates, newest first. */
export const credentialOf = (certificates: VerificationFacts["certificates"]) =>
  credential(
    verificationRecord({ ...FACTS, certificates }, { baseUrl: BASE_URL, scorePrice: SCORE_PRICES.one }, SAMPLE_NOW),
    ISSUER,
    `${BASE_URL}/credential/${FACTS.wallet}`,
  );

export const CREDENTIAL = credentialOf(FACTS.certificates);

/**
 * A document of another kind, without an issuer, times, or a subject, and with text that canonical JSON has rules for.
 */
const VERDICT = {
  "@context": ["https://www.w3.org/ns/credentials/v2"],
  verdict: "release",
  policy_version: 1,
  deal_ref: 'café \u20ac \u{1f600} "quoted" \\ / \n\u0001',
  facts: [{ name: "status", expected: 200, observed: 200, met: true }, { name: "size", observed: null }, []],
} satisfies Unsigned & Readonly<Record<string, unknown>>;

export const SIGNED_CREDENTIAL = await SIGNER.sign(CREDENTIAL, SAMPLE_NOW);
export const SIGNED_VERDICT = await SIGNER.sign(VERDICT, SAMPLE_NOW);
