import { z } from "zod";
import { time, url } from "../http/schema.ts";
import type { issuerDocument } from "./did.ts";
import type { Proof } from "./document.ts";
import type { PublicJwk } from "./keys.ts";

/** The signature of every signed document. */
export const PROOF = z
  .object({
    "@context": z.array(z.string()),
    type: z.literal("DataIntegrityProof"),
    cryptosuite: z.literal("eddsa-jcs-2022"),
    created: time,
    verificationMethod: z.string().regex(/^did:web:[^#]+#[\w-]{43}$/),
    proofPurpose: z.literal("assertionMethod"),
    jws: z
      .string()
      .regex(/^[\w-]+\.\.[\w-]{86}$/)
      .meta({ description: "Detached JWS (RFC 7515, appendix F) over the canonical form (RFC 8785) without `proof`." }),
    proofValue: z.string().regex(/^z/),
  })
  .meta({ id: "Proof" }) satisfies z.ZodType<Proof>;

export const JWKS = z
  .object({
    keys: z.array(
      z.object({
        kty: z.literal("OKP"),
        crv: z.literal("Ed25519"),
        x: z.string().regex(/^[\w-]{43}$/),
        kid: z.string().regex(/^[\w-]{43}$/),
        use: z.literal("sig"),
        alg: z.literal("EdDSA"),
      }),
    ),
  })
  .meta({ id: "KeySet" }) satisfies z.ZodType<{ keys: readonly PublicJwk[] }>;

export const DID = z
  .object({
    "@context": z.array(z.string()),
    id: z.string().regex(/^did:web:/),
    alsoKnownAs: z.array(z.string()).optional().meta({ description: "The identifiers of the service's other hosts." }),
    verificationMethod: z.array(
      z.object({
        id: z.string(),
        type: z.literal("Multikey"),
        controller: z.string(),
        publicKeyMultibase: z.string().regex(/^z/),
      }),
    ),
    assertionMethod: z.array(z.string()),
    service: z.array(z.object({ id: z.string(), type: z.literal("TransparencyLog"), serviceEndpoint: url })),
  })
  .meta({ id: "DidDocument" }) satisfies z.ZodType<ReturnType<typeof issuerDocument>>;

/** The members of every signed credential (W3C data model 2.0) around its subject. */
export const CREDENTIAL_MEMBERS = {
  "@context": z
    .tuple([
      z.literal("https://www.w3.org/ns/credentials/v2"),
      z.literal("https://www.w3.org/ns/credentials/undefined-terms/v2"),
    ])
    .meta({ items: { type: "string" } }),
  id: url,
  type: z.array(z.string()),
  issuer: z.string().regex(/^did:web:/),
  validFrom: time,
  validUntil: time.exactOptional(),
  proof: PROOF,
};
