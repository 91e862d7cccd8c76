import { createHmac, randomBytes } from "node:crypto";
import { instantiateSecp256k1 } from "@bitauth/libauth/build/lib/crypto/secp256k1.js";
import {
  hashTypedData,
  serializeTransaction,
  type TransactionSerializableEIP1559,
  type TypedDataDefinition,
  type TypedDataDomain,
  type TypedDataParameter,
} from "viem";
import type { Address, Hex } from "../wallet.ts";
import { keccak256 } from "./typed-data.ts";

// The package's index would load 40 MB more.

/** Bitcoin's libsecp256k1 as WebAssembly. The seed blinds its computations with private keys. */
const curve = await instantiateSecp256k1(randomBytes(32));

/**
 * Signs a 32-byte digest with a 32-byte private key: r, s and v in 65 bytes, s in the lower half of the order, v 27 or
 * 28. Deterministic (RFC 6979). Throws if the key is zero or not below the order.
 */
export function signDigest(digest: Hex, privateKey: Hex): Hex {
  const signed = curve.signMessageHashRecoverableCompact(bytesOf(privateKey), bytesOf(digest));
  if (typeof signed === "string") throw new Error(signed);
  return `0x${Buffer.from(signed.signature).toString("hex")}${(27 + signed.recoveryId).toString(16)}`;
}

/**
 * Recovers the account that made a 65-byte signature (r, s, v) over a 32-byte digest. Null if there is none: v is not
 * 27 or 28, r or s is zero or not below the order, or no point of the curve has r. A high s is accepted like a low one.
 */
export function signerOf(digest: Hex, signature: Hex): Address | null {
  const bytes = bytesOf(signature);
  const recoveryId = bytes[64] === 27 ? 0 : bytes[64] === 28 ? 1 : null;
  if (bytes.length !== 65 || recoveryId === null) return null;
  const publicKey = curve.recoverPublicKeyUncompressed(bytes.subarray(0, 64), recoveryId, bytesOf(digest));
  return typeof publicKey === "string" ? null : addressOf(publicKey);
}

/** Returns the address of a 32-byte private key. Throws if the key is zero or not below the order. */
export function accountOf(privateKey: Hex): Address {
  const publicKey = curve.derivePublicKeyUncompressed(bytesOf(privateKey));
  if (typeof publicKey === "string") throw new Error(publicKey);
  return addressOf(publicKey);
}

/** Returns the last 20 bytes of the Keccak-256 of an uncompressed public key without its first byte. */
const addressOf = (publicKey: Uint8Array): Address => `0x${keccak256(publicKey.subarray(1)).slice(-40)}`;

const bytesOf = (hex: Hex): Uint8Array => Buffer.from(hex.slice(2), "hex");

/** A message to sign by EIP-712. */
export interface TypedMessage {
  readonly domain: TypedDataDomain;
  readonly types: Readonly<Record<string, readonly TypedDataParameter[]>>;
  readonly primaryType: string;
  readonly message: object;
}

/** Casts the message, because viem wants one whose type has an index signature. */
export const asTypedData = (typed: TypedMessage): TypedDataDefinition => typed as TypedDataDefinition;

/** An account that signs for the service, wherever its key is. Rejects while it cannot sign. */
export interface SigningAccount {
  /** In lower case. */
  readonly address: Address;
  /**
   * Returns 65 bytes r, s, v, with s in the lower half of the order and v 27 or 28.
   * @param digest of the data, where it is known
   */
  signTypedData(typed: TypedMessage, digest?: Hex): Promise<Hex>;
  /** Returns the signed transaction, ready to be broadcast. */
  signTransaction(transaction: TransactionSerializableEIP1559): Promise<Hex>;
}

/** An account with a local key. It signs byte for byte as viem's `privateKeyToAccount` does, in a third of the time. */
export interface Account extends SigningAccount {
  /** Signs a 32-byte digest: 65 bytes r, s, v. */
  readonly sign: (digest: Hex) => Hex;
}

/** Creates the account of a 32-byte private key. Throws if the key is not valid. */
export function createAccount(privateKey: Hex): Account {
  const sign = (digest: Hex) => signDigest(digest, privateKey);
  return {
    address: accountOf(privateKey),
    sign,
    signTypedData: async (typed, digest = hashTypedData(asTypedData(typed))) => sign(digest),
    async signTransaction(transaction) {
      const signature = sign(keccak256(serializeTransaction(transaction)));
      const word = (at: number): Hex => `0x${signature.slice(at, at + 64)}`;
      return serializeTransaction(transaction, { r: word(2), s: word(66), yParity: signature.endsWith("1b") ? 0 : 1 });
    },
  };
}

export const derivedKey = (seed: Uint8Array, name: string): Hex =>
  `0x${createHmac("sha256", seed).update(name).digest("hex")}`;
