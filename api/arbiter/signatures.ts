import { listedKey } from "../../packages/verifier/src/offer-receipt/did-document.ts";
import { InputError } from "../../packages/verifier/src/refusal.ts";
import type { OfferBreachClaim } from "../../packages/verifier/src/verdict/v2/evidence.ts";
import { checkSignatures, didDocumentUrl, type FoundKey } from "../../packages/verifier/src/verdict/v2/signatures.ts";
import type { Fetched, Fetcher, FetchLimits } from "./fetcher.ts";
import type { SignaturesReading } from "./policy/category.ts";

/** How often a document is asked for that did not arrive. */
const ATTEMPTS = 2;

/**
 * Checks who signed. The key of a JWS comes from the DID document of the resource's own host, read through the guarded
 * fetch and without redirects: one that answers for another host does not speak for this one.
 */
export async function readSignatures(
  fetcher: Fetcher,
  { claim, limits }: { readonly claim: OfferBreachClaim; readonly limits: FetchLimits },
  signal: AbortSignal,
): Promise<SignaturesReading> {
  const url = didDocumentUrl(claim);
  const fetched = url === null ? null : await fetchDocument(fetcher, { url, limits }, signal);
  const content = fetched?.body?.decoded?.content;
  const signatures = await checkSignatures(claim, (kid) => keyIn(content, kid));
  if (url === null || fetched === null) return { document: null, signatures };
  const { body, ...how } = fetched;
  return { document: { url, fetched: how, sha256: body?.decoded?.sha256 ?? null }, signatures };
}

async function fetchDocument(
  fetcher: Fetcher,
  { url, limits }: { readonly url: string; readonly limits: FetchLimits },
  signal: AbortSignal,
): Promise<Fetched> {
  const request = { url, expectStatus: 200, contains: null, keep: true, limits } as const;
  let fetched = await fetcher.attempt(request, signal);
  for (let tries = 1; tries < ATTEMPTS && fetched.body === null && (fetched.head?.status ?? 500) >= 500; tries++)
    fetched = await fetcher.attempt(request, signal);
  return fetched;
}

function keyIn(document: Uint8Array | undefined, kid: string): FoundKey {
  if (document === undefined) return "no_document";
  try {
    return listedKey(document, kid) ?? "not_listed";
  } catch (error) {
    if (error instanceof InputError) return "no_document";
    throw error;
  }
}
