/** Thrown for a fault of the workflow or the service; the message is for the log. */
export class Failure extends Error {}

/** Reads an input by its name; empty if it is not given. */
export type Input = (name: string) => string;

/** Returns the input's text if it has the form. */
export function matching(
  name: string,
  text: string,
  { form, expected }: { readonly form: RegExp; readonly expected: string },
): string {
  if (!form.test(text)) throw new Failure(`${name} is "${text}"; expected ${expected}.`);
  return text;
}

/** Parses a key, which never appears in a message. */
export function keyOf(text: string): `0x${string}` {
  if (!/^0x[0-9a-fA-F]{64}$/.test(text))
    throw new Failure("payer-private-key is not a key; expected 0x and 64 hex digits, from a repository secret.");
  return text as `0x${string}`;
}

/** `0.75` → 750000n. */
export function parseUsd(text: string): bigint {
  const [, whole = "", fraction = ""] = /^(\d{1,6})(?:\.(\d{1,6}))?$/.exec(text) ?? [];
  if (whole === "") throw new Failure(`max-price is "${text}"; expected an amount in USDC, such as 0.75.`);
  return BigInt(whole + fraction.padEnd(6, "0"));
}

/** 750000n → `0.75`. */
export const formatUsd = (atomic: bigint): string => {
  const digits = atomic.toString().padStart(7, "0");
  return `${digits.slice(0, -6)}.${digits.slice(-6).replace(/0{1,4}$/, "")}`;
};
