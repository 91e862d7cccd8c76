import type { onchainTable } from "ponder";

type Builders = Parameters<Extract<Parameters<typeof onchainTable>[1], (t: never) => unknown>>[0];
type Hex = `0x${string}`;

/** Hexadecimal text with `0x` for the handlers, in lower case; in the database its bytes, which are half as long. */
export const bytes = (t: Builders) =>
  t.customType<{ data: Hex; driverData: Buffer }>({
    dataType: () => "bytea",
    toDriver: (hex) => Buffer.from(hex.slice(2), "hex"),
    fromDriver: (stored) => `0x${stored.toString("hex")}`,
  })();

/** The same of base64. */
export const base64Bytes = (t: Builders) =>
  t.customType<{ data: string; driverData: Buffer }>({
    dataType: () => "bytea",
    toDriver: (text) => Buffer.from(text, "base64"),
    fromDriver: (stored) => stored.toString("base64"),
  })();
