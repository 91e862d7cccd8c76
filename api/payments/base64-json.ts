const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;
const utf8 = new TextDecoder();

/** A value as x402's headers carry it: JSON in UTF-8, in base64 with padding. */
export const toBase64Json = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64");

/** Reads it as x402's own library does: padding may be left out. Throws if it is not base64 of JSON. */
export function fromBase64Json(text: string): unknown {
  const isWhole = text.includes("=") ? text.length % 4 === 0 : text.length % 4 !== 1;
  if (!BASE64.test(text) || !isWhole) throw new Error("not base64");
  return JSON.parse(utf8.decode(Buffer.from(text, "base64")));
}
