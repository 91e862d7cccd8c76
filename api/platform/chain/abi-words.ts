import type { Address, Hex } from "../wallet.ts";

// The contract ABI's words in hex without 0x, for what is hashed all the time: viem's encoder walks the ABI each time.

const BITS_A_DIGIT = 4;
const DIGITS_A_WORD = 64;

/** A number in 32 bytes. Throws if it does not fit its type. */
export function uintWord(value: bigint | number, bits = 256): string {
  const digits = BigInt(value).toString(16);
  if (value < 0 || digits.length > bits / BITS_A_DIGIT) throw new Error(`${value} does not fit into ${bits} bits`);
  return digits.padStart(DIGITS_A_WORD, "0");
}

/** An address in 32 bytes. Throws if it is none. */
export function addressWord(address: Address): string {
  if (!/^0x[0-9a-f]{40}$/i.test(address)) throw new Error(`${address} is not an address`);
  return address.slice(2).toLowerCase().padStart(DIGITS_A_WORD, "0");
}

/** 32 bytes. Throws if there are more or fewer. */
export function bytes32Word(bytes: Hex): string {
  if (!/^0x[0-9a-f]{64}$/i.test(bytes)) throw new Error(`${bytes} is not 32 bytes`);
  return bytes.slice(2).toLowerCase();
}
