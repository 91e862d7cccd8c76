import { createKeccak } from "hash-wasm";
import type { Hex } from "../wallet.ts";

const hasher = await createKeccak(256);

/** The Keccak-256 of bytes, or of the bytes that hex stands for, as Ethereum hashes: 32 bytes in hex. */
export const keccak256 = (data: Uint8Array | Hex): Hex =>
  `0x${hasher
    .init()
    .update(typeof data === "string" ? Buffer.from(data.slice(2), "hex") : data)
    .digest("hex")}`;
