import { createHash } from "node:crypto";

const sha256 = (...parts: readonly Uint8Array[]): Buffer => {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest();
};

/** RFC 6962, section 2.1, word for word: no tiles, nothing kept. */
export function naiveRoot(entries: readonly Uint8Array[]): Buffer {
  const [first] = entries;
  if (first === undefined) return sha256();
  if (entries.length === 1) return sha256(Buffer.of(0), first);
  let split = 1;
  while (split * 2 < entries.length) split *= 2;
  return sha256(Buffer.of(1), naiveRoot(entries.slice(0, split)), naiveRoot(entries.slice(split)));
}
