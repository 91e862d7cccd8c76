/** A 20-byte account address in lower case, checked once, at the edge, by `parseAddress`. */
export type Address = `0x${string}`;
export type Hex = `0x${string}`;

const ADDRESS = /^0x[0-9a-f]{40}$/i;

/**
 * The address in lower case, or null if the text is not an address. Accepts mixed case without checking its EIP-55
 * checksum.
 */
export const parseAddress = (text: unknown): Address | null =>
  typeof text === "string" && ADDRESS.test(text) ? (text.toLowerCase() as Address) : null;
