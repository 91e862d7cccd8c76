import { createHash, sign as cryptoSign, type KeyObject } from "node:crypto";
import { instantiateSecp256k1 } from "@bitauth/libauth/build/lib/crypto/secp256k1.js";
import canonicalize from "canonicalize";
import { FlattenedSign } from "jose";
import { base58btc } from "multiformats/bases/base58";
import pg from "pg";
import { request } from "undici";
import { hashTypedData, keccak256, toHex } from "viem";
import { privateKeyToAddress } from "viem/accounts";
import { signingKey } from "../../api/signing/keys.ts";
import type { Claim, Side, SidePlan } from "./sides.ts";

const TYPES = {
  Verdict: [
    { name: "id", type: "string" },
    { name: "outcome", type: "string" },
    { name: "conditionsSha256", type: "bytes32" },
    { name: "dealRefHash", type: "bytes32" },
    { name: "issuedAt", type: "uint64" },
  ],
} as const;
const DOMAIN = { name: "Bare Arbiter", version: "1", chainId: 8453 } as const;

const curve = await instantiateSecp256k1();

const sha256 = (bytes: string | Uint8Array): Buffer => createHash("sha256").update(bytes).digest();
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
const jcs = (value: unknown): string => canonicalize(value) as string;

/** The table the peer inserts into. */
export const PEER_TABLE =
  "CREATE TABLE peer_verdict (id text PRIMARY KEY, category text NOT NULL, outcome text NOT NULL, document text NOT NULL, issued_at timestamptz NOT NULL)";

/** What someone who needs signed verdicts and knows the libraries would write: no more than our verdicts show. */
export async function peer(plan: SidePlan): Promise<Side & { readonly end: () => Promise<void> }> {
  const pool = new pg.Pool({ connectionString: plan.databaseUrl, max: 16 });
  const sign = signer(plan, await signingKey(plan.signingSeed));
  return {
    end: () => pool.end(),
    async decide(claim, number) {
      const started = performance.now();
      const { found, facts } = claim.category === "payload-hash" ? hashed(claim) : await fetched(claim);
      const fetchMs = claim.category === "payload-hash" ? 0 : performance.now() - started;
      const expected = String(claim.conditions.expected_sha256 ?? claim.conditions.expect_sha256);
      const verdict = found === expected ? "release" : "refund";
      const id = hex(sha256(`peer ${number}`)).slice(0, 32);
      const issuedAt = new Date();
      const document = await sign(claim, { id, verdict, facts, issuedAt });
      await pool.query(
        "INSERT INTO peer_verdict (id, category, outcome, document, issued_at) VALUES ($1, $2, $3, $4, $5)",
        [id, claim.category, verdict, document, issuedAt],
      );
      return { verdict, fetchMs };
    },
  };
}

function hashed({ conditions }: Claim) {
  const payload = Buffer.from(String(conditions.payload_text));
  const found = hex(sha256(payload));
  return { found, facts: [{ fact: "payload", encoding: "text", bytes: payload.length, sha256: found }] };
}

async function fetched({ conditions }: Claim) {
  const { statusCode, headers, body } = await request(String(conditions.url), { reset: true });
  const hash = createHash("sha256");
  let bytes = 0;
  for await (const piece of body as AsyncIterable<Buffer>) {
    hash.update(piece);
    bytes += piece.length;
  }
  const found = hash.digest("hex");
  const fact = { fact: "fetch_attempt", attempt: 1, url: conditions.url, status: statusCode };
  return {
    found,
    facts: [{ ...fact, content_type: headers["content-type"] ?? null, received: { bytes, sha256: found } }],
  };
}

interface Decision {
  readonly id: string;
  readonly verdict: string;
  readonly facts: readonly object[];
  readonly issuedAt: Date;
}

/** Builds the document and makes its three signatures. */
function signer({ baseUrl, arbiterKey }: SidePlan, key: Awaited<ReturnType<typeof signingKey>>) {
  const issuer = `did:web:${new URL(baseUrl).host}`;
  const secret = Buffer.from(arbiterKey.slice(2), "hex");
  const address = privateKeyToAddress(arbiterKey).toLowerCase();
  const { kid } = key.publicJwk;
  return async (claim: Claim, { id, verdict, facts, issuedAt }: Decision): Promise<string> => {
    const { category, conditions, deal_ref } = claim;
    const conditionsSha256 = hex(sha256(jcs({ category, conditions })));
    const message = {
      id,
      outcome: verdict,
      conditionsSha256: `0x${conditionsSha256}` as const,
      dealRefHash: keccak256(toHex(deal_ref)),
      issuedAt: Math.floor(issuedAt.getTime() / 1000),
    };
    const typed = { domain: DOMAIN, types: TYPES, primaryType: "Verdict" } as const;
    const digest = hashTypedData({ ...typed, message: { ...message, issuedAt: BigInt(message.issuedAt) } });
    const signed = curve.signMessageHashRecoverableCompact(secret, Buffer.from(digest.slice(2), "hex"));
    if (typeof signed === "string") throw new Error(signed);
    const { signature, recoveryId } = signed;
    const attestation = {
      ...typed,
      message,
      signer: address,
      signature: `0x${hex(signature)}${(27 + recoveryId).toString(16)}`,
    };
    const document = {
      "@context": ["https://www.w3.org/ns/credentials/undefined-terms/v2"],
      type: "ArbiterVerdict",
      id,
      issuer,
      verdict,
      category,
      conditions_sha256: conditionsSha256,
      deal_ref,
      facts: [...facts, { fact: "condition", condition: "sha256", result: verdict === "release" ? "true" : "false" }],
      policy_version: 1,
      issued_at: issuedAt.toISOString(),
      verdict_url: `${baseUrl}/verdict/${id}`,
      attestation,
    };
    const proof = await prove(document, { issuer, kid, issuedAt, key: key.privateKey });
    return JSON.stringify({ ...document, proof });
  };
}

/** A detached JWS by jose, and the W3C eddsa-jcs-2022 signature by bare node:crypto. */
async function prove(
  document: { readonly "@context": readonly string[] },
  by: { readonly issuer: string; readonly kid: string; readonly issuedAt: Date; readonly key: KeyObject },
) {
  const canonical = jcs(document);
  const { protected: header, signature } = await new FlattenedSign(Buffer.from(canonical))
    .setProtectedHeader({ alg: "EdDSA", kid: by.kid })
    .sign(by.key);
  const options = {
    "@context": document["@context"],
    type: "DataIntegrityProof",
    cryptosuite: "eddsa-jcs-2022",
    created: by.issuedAt.toISOString(),
    verificationMethod: `${by.issuer}#${by.kid}`,
    proofPurpose: "assertionMethod",
    jws: `${header}..${signature}`,
  };
  const data = Buffer.concat([sha256(jcs(options)), sha256(canonical)]);
  return { ...options, proofValue: base58btc.encode(cryptoSign(null, data, by.key)) };
}
