import { InputError, quote } from "./refusal.ts";

/** The signer: one host, as a did:web identifier and as the origin that serves its keys. */
export interface Issuer {
  readonly did: string;
  readonly origin: string;
}

const DID_WEB = /^did:web:((?:[a-z0-9-]+\.)*[a-z0-9-]+)(?:%3A(\d{1,5}))?$/;

/**
 * Parses an issuer from its origin (`https://trust.example`) or its did:web identifier (`did:web:trust.example`). Plain
 * http is allowed for `localhost` only.
 * @throws InputError
 */
export function parseIssuer(text: string): Issuer {
  const issuer = text.startsWith("did:") ? issuerOfDid(text) : issuerOfOrigin(text);
  if (issuer !== null) return issuer;
  throw new InputError(
    `${quote(text)} is not an issuer: expected an origin like https://trust.example (http only for localhost, no IP address, no path) or its did:web identifier`,
  );
}

/** Returns the issuer named by a did:web identifier without a path, or null. */
export function issuerOfDid(did: string): Issuer | null {
  const [, host, port] = DID_WEB.exec(did) ?? [];
  if (host === undefined || /^[\d.]+$/.test(host) || Number(port ?? 0) > 65_535) return null;
  return { did, origin: `${host === "localhost" ? "http" : "https"}://${host}${port === undefined ? "" : `:${port}`}` };
}

function issuerOfOrigin(text: string): Issuer | null {
  if (!URL.canParse(text)) return null;
  const { origin, host, href } = new URL(text);
  const issuer = issuerOfDid(`did:web:${host.replace(":", "%3A")}`);
  return issuer?.origin === origin && href === `${origin}/` ? issuer : null;
}

export const keySetUrl = ({ origin }: Issuer): string => `${origin}/.well-known/jwks.json`;
