import canonicalize from "canonicalize";

/** SHA-256 of the RFC 8785 form of a record's facts, in lower-case hex. */
export async function inputsSha256(inputs: object): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(canonicalize(inputs)));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
