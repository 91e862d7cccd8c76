import { isTime } from "../freshness.ts";
import { type Issuer, keySetUrl, parseIssuer } from "../issuer.ts";
import { parseKeySet } from "../key-set.ts";
import { InputError, quote } from "../refusal.ts";
import type { Expectation } from "../verify-document.ts";
import { isUrl, readSource, TEXT } from "./arguments.ts";

/** The options that select the trusted keys and the time. */
export const TRUST_OPTIONS = { issuer: TEXT, jwks: TEXT, at: TEXT } as const;

/** The options that were given, and the source of the document. */
type Given = Readonly<Partial<Record<keyof typeof TRUST_OPTIONS, string | undefined>>> & { readonly source: string };

/** The keys that were trusted, and why: no signature can prove this part. */
export interface Trust {
  readonly expected: Expectation;
  readonly keysFrom: string;
  readonly because: string;
}

/**
 * Reads the keys to check a signed document with: from `--jwks`, else from `--issuer`, else from the origin that served
 * the document.
 * @throws InputError with the usage if none of these is given, if the issuer or the time is invalid, or if the keys
 * cannot be read
 */
export async function readTrust({ source, issuer: named, jwks, at: time }: Given, usage: string): Promise<Trust> {
  if (time !== undefined && !isTime(time))
    throw new InputError(`--at ${quote(time)} is not a UTC time like 2026-11-21T09:30:00Z`);
  const at = time === undefined ? undefined : new Date(time);
  const issuer = named === undefined ? undefined : parseIssuer(named);
  if (jwks !== undefined) {
    const keys = await parseKeySet(await readText(jwks));
    return { expected: { keys, issuer: issuer?.did, at }, keysFrom: jwks, because: "--jwks names these keys" };
  }
  if (issuer !== undefined) return fetched(issuer, "--issuer names this issuer", at);
  if (isUrl(source)) return fetched(parseIssuer(new URL(source).origin), "the document was read from this origin", at);
  throw new InputError(
    `Which issuer do you expect? A document that names its own issuer proves nothing; add --issuer or --jwks.\n\n${usage}`,
  );
}

async function fetched(issuer: Issuer, because: string, at: Date | undefined): Promise<Trust> {
  const url = keySetUrl(issuer);
  return { expected: { keys: await parseKeySet(await readText(url)), issuer: issuer.did, at }, keysFrom: url, because };
}

const readText = async (source: string): Promise<string> => new TextDecoder().decode(await readSource(source));
