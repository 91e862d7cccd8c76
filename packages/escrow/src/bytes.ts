/** Returns text as base64 of its UTF-8 bytes. */
export const encodeText = (text: string): string => encodeBytes(new TextEncoder().encode(text));

export function encodeBytes(bytes: Uint8Array): string {
  let latin1 = "";
  for (const byte of bytes) latin1 += String.fromCharCode(byte);
  return btoa(latin1);
}

/** Returns the decoded text. @throws if it is not base64, or its bytes are not UTF-8 */
export const decodeText = (base64: string): string =>
  new TextDecoder("utf-8", { fatal: true }).decode(decodeBytes(base64));

/** Returns the decoded bytes. @throws if it is not base64 */
export function decodeBytes(base64: string): Uint8Array {
  const latin1 = atob(base64);
  const bytes = new Uint8Array(latin1.length);
  for (let at = 0; at < latin1.length; at += 1) bytes[at] = latin1.charCodeAt(at);
  return bytes;
}

/** Concatenates the chunks. */
export function joined(chunks: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(chunks.reduce((size, chunk) => size + chunk.length, 0));
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}
