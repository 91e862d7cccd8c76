/** The maximum size of an entry in C2SP tlog-tiles. */
export const MAX_ENTRY_BYTES = 65_535;

/** Returns a bundle: each entry after its length in two bytes, big-endian (C2SP tlog-tiles, "Log entries"). */
export function formatBundle(entries: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(entries.reduce((sum, { length }) => sum + 2 + length, 0));
  const view = new DataView(bytes.buffer);
  let at = 0;
  for (const entry of entries) {
    if (entry.length > MAX_ENTRY_BYTES) throw new RangeError(`an entry has ${entry.length} bytes`);
    view.setUint16(at, entry.length);
    bytes.set(entry, at + 2);
    at += 2 + entry.length;
  }
  return bytes;
}

/** Returns the entries of a bundle, or null if the bytes are not a bundle. */
export function parseBundle(bytes: Uint8Array): readonly Uint8Array[] | null {
  const entries: Uint8Array[] = [];
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let at = 0;
  while (at + 2 <= bytes.length) {
    const end = at + 2 + view.getUint16(at);
    if (end > bytes.length) return null;
    entries.push(bytes.subarray(at + 2, end));
    at = end;
  }
  return at === bytes.length ? entries : null;
}
