import { createKeccak } from "hash-wasm";
import type { Address, Hex } from "../wallet.ts";

// The words of the contract ABI in hex without 0x, for frequent hashes. viem's encoder walks the ABI each time.

const BITS_A_DIGIT = 4;
const DIGITS_A_WORD = 64;

/** Encodes a number in 32 bytes. Throws if it does not fit its type. */
export function uintWord(value: bigint | number, bits = 256): string {
  const digits = BigInt(value).toString(16);
  if (value < 0 || digits.length > bits / BITS_A_DIGIT) throw new Error(`${value} does not fit into ${bits} bits`);
  return digits.padStart(DIGITS_A_WORD, "0");
}

/** Encodes an address in 32 bytes. Throws if it is not one. */
export function addressWord(address: Address): string {
  if (!/^0x[0-9a-f]{40}$/i.test(address)) throw new Error(`${address} is not an address`);
  return address.slice(2).toLowerCase().padStart(DIGITS_A_WORD, "0");
}

/** Encodes 32 bytes. Throws if there are more or fewer. */
export function bytes32Word(bytes: Hex): string {
  if (!/^0x[0-9a-f]{64}$/i.test(bytes)) throw new Error(`${bytes} is not 32 bytes`);
  return bytes.slice(2).toLowerCase();
}

const hasher = await createKeccak(256);

/** Returns the Keccak-256, as Ethereum uses it, of bytes given as such or in hex: 32 bytes in hex. */
export const keccak256 = (data: Uint8Array | Hex): Hex =>
  `0x${hasher
    .init()
    .update(typeof data === "string" ? Buffer.from(data.slice(2), "hex") : data)
    .digest("hex")}`;

/** Returns the hash of a text in hex without 0x, for use as a word. */
const hashOf = (text: string): string => keccak256(Buffer.from(text)).slice(2);

export interface Domain {
  readonly name: string;
  readonly version: string;
  readonly chainId: number;
  readonly verifyingContract: Address;
}

export interface Member {
  readonly name: string;
  readonly type: string;
}

const DOMAIN = hashOf("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");

/** Returns EIP-712's hash of a domain with these four members, in hex without 0x. */
export const domainHash = ({ name, version, chainId, verifyingContract }: Domain): string =>
  keccak256(`0x${DOMAIN}${hashOf(name)}${hashOf(version)}${uintWord(chainId)}${addressWord(verifyingContract)}`).slice(
    2,
  );

/** Returns EIP-712's hash of a type without nested structs, in hex without 0x. */
export const typeHash = (name: string, members: readonly Member[]): string =>
  hashOf(`${name}(${members.map((member) => `${member.type} ${member.name}`).join(",")})`);

/** Encodes a text in a struct: the hash of its UTF-8. */
export const textWord = hashOf;

/** Returns the digest to sign: the struct, as its type's hash and its members' words, under the domain. */
export const typedDigest = (domain: string, struct: string): Hex =>
  keccak256(`0x1901${domain}${keccak256(`0x${struct}`).slice(2)}`);
