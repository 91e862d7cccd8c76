import { issuerOfDid } from "../issuer.ts";

/** A did:web identifier, and the URL of its document. */
export interface Speaker {
  readonly did: string;
  readonly documentUrl: string;
}

const SEGMENT = /^(?!\.{1,2}$)[\w.~-]+$/;
/** An encoded separator or dot segment, which servers interpret differently. */
const AMBIGUOUS = /%2[ef]|%5c/i;

/**
 * Returns the did:web identifier in a key's id if it may speak for a resource: the resource's own host, or a path that
 * the resource is under (`did:web:shop.example:a` for `https://shop.example/a/…`). Null for any other.
 * @param kid a DID URL, `did:web:HOST#FRAGMENT` or `did:web:HOST:PATH#FRAGMENT`
 */
export function speakerFor(resourceUrl: string, kid: string): Speaker | null {
  const did = kid.split("#")[0] ?? "";
  const [scheme, method, host, ...path] = did.split(":");
  const issuer = issuerOfDid([scheme, method, host].join(":"));
  const { origin, pathname } = new URL(resourceUrl);
  if (issuer === null || issuer.origin !== origin) return null;
  if (path.length === 0) return { did, documentUrl: `${origin}/.well-known/did.json` };
  const folder = `/${path.join("/")}/`;
  const isUnder = `${pathname}/`.startsWith(folder) && !AMBIGUOUS.test(pathname);
  return isUnder && path.every((segment) => SEGMENT.test(segment))
    ? { did, documentUrl: `${origin}${folder}did.json` }
    : null;
}

/** Returns the URL of a key's DID document, which is always on the resource's own origin. */
export const documentUrlFor = (resourceUrl: string, kid: string): string =>
  speakerFor(resourceUrl, kid)?.documentUrl ?? `${new URL(resourceUrl).origin}/.well-known/did.json`;
