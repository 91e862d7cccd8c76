import type { Hex } from "viem";

/** An entry of an ABI, as the compiler writes it. */
export interface AbiItem {
  readonly type: string;
  readonly name?: string;
  readonly stateMutability?: string;
}

/** An ABI in one order, without what only the compiler or only viem writes. */
export const sortedAbi = (items: readonly unknown[]): readonly string[] =>
  items.map((item) => JSON.stringify(plain(item))).toSorted();

/** Sorted keys, without the compiler's own types, empty names and what an event does not index. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  const isSaid = ([key, inner]: readonly [string, unknown]) =>
    key !== "internalType" && inner !== "" && !(["anonymous", "indexed"].includes(key) && inner === false);
  const entries = Object.entries(value).filter(isSaid);
  const sorted = entries.toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(sorted.map(([key, inner]) => [key, plain(inner)]));
}

const OPCODES = {
  SLOAD: 0x54,
  SSTORE: 0x55,
  TLOAD: 0x5c,
  TSTORE: 0x5d,
  CREATE: 0xf0,
  CALL: 0xf1,
  CALLCODE: 0xf2,
  DELEGATECALL: 0xf4,
  CREATE2: 0xf5,
  SELFDESTRUCT: 0xff,
} as const;
type Opcode = keyof typeof OPCODES;

/** Which of the opcodes are in the runtime code, without the data that PUSH carries and the metadata at the end. */
export function opcodesIn(code: Hex, wanted: readonly Opcode[]): readonly Opcode[] {
  const bytes = Buffer.from(code.slice(2), "hex");
  const end = bytes.length - bytes.readUInt16BE(bytes.length - 2) - 2;
  const seen = new Set<number>();
  for (let at = 0; at < end; at++) {
    const opcode = bytes[at] ?? 0;
    seen.add(opcode);
    if (opcode >= 0x60 && opcode <= 0x7f) at += opcode - 0x5f;
  }
  return wanted.filter((name) => seen.has(OPCODES[name]));
}
