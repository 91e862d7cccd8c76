import type { onchainTable } from "ponder";

type Builders = Parameters<Extract<Parameters<typeof onchainTable>[1], (t: never) => unknown>>[0];
type Hex = `0x${string}`;

export const int = (t: Builders) => t.integer().notNull();
/** Unix seconds or a block number. */
export const big = (t: Builders) => t.int8({ mode: "number" }).notNull();
/** Atomic units of USDC, of any size: sums over flash loans exceed 64 bits. */
export const atomic = (t: Builders) => t.bigint().notNull();
export const hex = (t: Builders) => t.hex().notNull();

/** Lower-case hexadecimal text with `0x` in handlers, and bytes, which are half as long, in the database. */
export const bytes = (t: Builders) =>
  t.customType<{ data: Hex; driverData: Buffer }>({
    dataType: () => "bytea",
    toDriver: (hex) => Buffer.from(hex.slice(2), "hex"),
    fromDriver: (stored) => `0x${stored.toString("hex")}`,
  })();

export const account = (t: Builders) => bytes(t).notNull();

/** Base64 text in handlers, and bytes in the database. */
export const base64Bytes = (t: Builders) =>
  t.customType<{ data: string; driverData: Buffer }>({
    dataType: () => "bytea",
    toDriver: (text) => Buffer.from(text, "base64"),
    fromDriver: (stored) => stored.toString("base64"),
  })();
