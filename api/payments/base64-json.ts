/** A value as x402's headers carry it: JSON in UTF-8, in base64 with padding. */
export const toBase64Json = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64");
