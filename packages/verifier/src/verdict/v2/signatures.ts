import { base64url } from "jose";
import { publicJwk } from "../../offer-receipt/did-document.ts";
import { type Speaker, speakerFor } from "../../offer-receipt/speaker.ts";
import { type Kind, readStatement, type Statement } from "../../offer-receipt/statement.ts";
import { algorithmOf, verifyJws } from "../../offer-receipt/verify-jws.ts";
import { InputError } from "../../refusal.ts";
import type { JsonObject } from "../../strict-json.ts";
import { isObject, parseStrictJson } from "../../strict-json.ts";
import type { OfferBreachClaim, SignatureFact, SignatureReason } from "./evidence.ts";

/** The key of a verification method, or the reason why there is none. */
export type FoundKey = JsonObject | "no_document" | "not_listed";

/** Finds the key that a kid names. */
type KeyOf = (kid: string, of: Kind) => FoundKey;

type Jws = Extract<Statement, { format: "jws" }>;

const HEADER = new Set(["alg", "kid", "typ"]);

const speakerOf = ({ kid, payload }: Jws): Speaker | null => speakerFor(payload.resourceUrl, kid);

/**
 * Returns the URL of the DID document with the key of a claim's signatures, on the resource's host. Null if no document
 * could make them valid, or if none is needed.
 */
export function didDocumentUrl({ offer }: Pick<OfferBreachClaim, "offer">): string | null {
  const statement = readStatement("offer", offer);
  const speaker = statement.format === "jws" ? speakerOf(statement) : null;
  return speaker?.documentUrl ?? null;
}

/**
 * Checks whether the offer and the receipt are the seller's: signed with a key of the resource's own host (JWS), or by
 * the account that the offer pays (EIP-712). The receipt must have the same form and signer.
 * @param keyOf finds the key that a kid names in the host's DID document
 */
export async function checkSignatures(claim: OfferBreachClaim, keyOf: KeyOf): Promise<readonly SignatureFact[]> {
  const offer = readStatement("offer", claim.offer);
  const receipt = claim.receipt === null ? null : readStatement("receipt", claim.receipt);
  const signer = offer.format === "jws" ? (speakerOf(offer)?.did ?? null) : String(offer.payload.payTo).toLowerCase();
  const check = (statement: Statement) =>
    statement.format === "jws" ? checkJws(statement, signer, keyOf) : checkTypedData(statement, signer);
  if (receipt === null) return [await check(offer)];
  const isSameFormat = receipt.format === offer.format;
  return [await check(offer), isSameFormat ? await check(receipt) : fact(receipt.kind, signer)("other_signer")];
}

const fact =
  (of: Kind, signer: string | null) =>
  (reason: SignatureReason, key: JsonObject | null = null): SignatureFact => ({
    fact: "signature",
    of,
    signer,
    key,
    reason,
  });

async function checkJws(statement: Jws, signer: string | null, keyOf: KeyOf): Promise<SignatureFact> {
  const { kind, kid, jws } = statement;
  const found = fact(kind, signer);
  if (signer === null) return found("other_host");
  if (kid.split("#")[0] !== signer) return found("other_signer");
  const key = keyOf(kid, kind);
  if (typeof key === "string") return found(key);
  const header = headerOf(jws);
  const jwk = publicJwk(key);
  const isPlain = Object.keys(header).every((name) => HEADER.has(name));
  if (!isPlain || (jwk !== null && header.alg !== algorithmOf(jwk))) return found("header", key);
  const holds = jwk !== null && (await verifyJws(jws, jwk).catch(refused));
  return found(holds ? "valid" : "bad_signature", key);
}

/** An invalid key verifies nothing. */
function refused(error: unknown): false {
  if (error instanceof InputError) return false;
  throw error;
}

/** The header is a JSON object, because it was parsed before. */
function headerOf(jws: string): JsonObject {
  const header = parseStrictJson(base64url.decode(jws.split(".")[0] ?? ""));
  return isObject(header) ? header : {};
}

async function checkTypedData(
  { kind, payload, signature }: Extract<Statement, { format: "eip712" }>,
  signer: string | null,
): Promise<SignatureFact> {
  const { signerOf } = await import("../../offer-receipt/typed-data.ts");
  const signed = await signerOf(kind, payload, signature);
  return fact(kind, signer)(signed !== null && signed === signer ? "valid" : "not_by_payee");
}
