import { addressWord, uintWord } from "./abi-words.ts";
import { keccak256 } from "./keccak.ts";
import type { Address, Hex } from "../wallet.ts";

/** Hashes in hex without 0x, to be put into words. */
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

/** EIP-712's hash of a domain with these four members, in hex without 0x. */
export const domainHash = ({ name, version, chainId, verifyingContract }: Domain): string =>
  keccak256(`0x${DOMAIN}${hashOf(name)}${hashOf(version)}${uintWord(chainId)}${addressWord(verifyingContract)}`).slice(
    2,
  );

/** EIP-712's hash of a type whose members are no structs, in hex without 0x. */
export const typeHash = (name: string, members: readonly Member[]): string =>
  hashOf(`${name}(${members.map((member) => `${member.type} ${member.name}`).join(",")})`);

/** A text in a struct: the hash of its UTF-8. */
export const textWord = hashOf;

/** What is signed: the struct, as its type's hash and its members' words, under the domain. */
export const typedDigest = (domain: string, struct: string): Hex =>
  keccak256(`0x1901${domain}${keccak256(`0x${struct}`).slice(2)}`);
