import { createHash } from "node:crypto";
import canonicalize from "canonicalize";

export interface RequestShape {
  readonly method: string;
  readonly route: string;
  readonly query: URLSearchParams;
  readonly body: Uint8Array;
}

/**
 * SHA-256 over method, route, sorted query and the body's JCS form (RFC 8785); a body that is not JSON counts as raw
 * bytes.
 */
export function fingerprint({ method, route, query, body }: RequestShape): Buffer {
  const pairs = [...query].map(([name, value]) => JSON.stringify([name, value])).sort();
  return createHash("sha256")
    .update(`${method}\n${route}\n${pairs.join("&")}\n`)
    .update(bodyDigest(body))
    .digest();
}

function bodyDigest(body: Uint8Array): Buffer {
  const hash = createHash("sha256");
  const parsed = parseJson(body);
  const canonical = parsed === undefined ? undefined : tryCanonicalize(parsed.value);
  return canonical === undefined
    ? hash.update("bytes:").update(body).digest()
    : hash.update("json:").update(canonical).digest();
}

/** The JSON value of a body, `{ value: null }` if there is no body, undefined if the bytes are not JSON. */
export function parseJson(body: Uint8Array): { readonly value: unknown } | undefined {
  if (body.length === 0) return { value: null };
  try {
    return { value: JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body)) as unknown };
  } catch {
    return undefined;
  }
}

function tryCanonicalize(value: unknown): string | undefined {
  try {
    return canonicalize(value);
  } catch {
    return undefined;
  }
}
