import { recover, signRecoverable } from "tiny-secp256k1";
import { hashTypedData, keccak256, toHex } from "viem";
import { publicKeyToAddress } from "viem/accounts";
import type { Address, Hex } from "../kernel/wallet.ts";
import type { Verdict } from "./policy/policy.ts";

/** What a contract needs to know of a verdict. */
export interface VerdictFacts {
  /** The verdict's id. */
  readonly id: string;
  readonly outcome: Verdict;
  /** 64 hex digits, as in the document. */
  readonly conditionsSha256: string;
  readonly dealRef: string | null;
  readonly issuedAt: Date;
}

/** Signs a 32-byte digest: 65 bytes r, s, v with s in the lower half of the order and v 27 or 28. */
export type SignDigest = (digest: Hex) => Hex;

/** The EIP-712 type that the arbiter signs. */
export const VERDICT_TYPES = {
  Verdict: [
    { name: "id", type: "string" },
    { name: "outcome", type: "string" },
    { name: "conditionsSha256", type: "bytes32" },
    { name: "dealRefHash", type: "bytes32" },
    { name: "issuedAt", type: "uint64" },
  ],
} as const;

/** The EIP-712 domain of verdicts. It names no contract: any escrow on the chain may execute a verdict. */
export const attestationDomain = (chainId: number) => ({ name: "Agent Payment Trust Arbiter", version: "1", chainId });

export type Attestation = ReturnType<typeof attest>;

/**
 * The EIP-712 signature of a verdict, as it stands in the document. `contracts/VerdictLib.sol` checks it on the chain.
 * `issuedAt` is in unix seconds, the fraction cut off.
 */
export function attest(facts: VerdictFacts, chainId: number, sign: SignDigest) {
  const message = {
    id: facts.id,
    outcome: facts.outcome,
    conditionsSha256: `0x${facts.conditionsSha256}` as Hex,
    dealRefHash: keccak256(toHex(facts.dealRef ?? "")),
    issuedAt: Math.floor(facts.issuedAt.getTime() / 1000),
  };
  const typed = { domain: attestationDomain(chainId), types: VERDICT_TYPES, primaryType: "Verdict" } as const;
  const digest = hashTypedData({ ...typed, message: { ...message, issuedAt: BigInt(message.issuedAt) } });
  const signature = sign(digest);
  const signer = signers.get(sign) ?? signerOf(digest, signature);
  signers.set(sign, signer);
  return { ...typed, message, signer, signature };
}

/** Recovering takes longer than signing; a key has one address, so it is recovered from its first signature only. */
const signers = new WeakMap<SignDigest, Address>();

/** A synchronous signer for the key. Deterministic (RFC 6979): the same digest always has the same signature. */
export function digestSigner(privateKey: Hex): SignDigest {
  const key = bytesOf(privateKey);
  return (digest) => {
    const { signature, recoveryId } = signRecoverable(bytesOf(digest), key);
    return `0x${Buffer.from(signature).toString("hex")}${(27 + recoveryId).toString(16)}`;
  };
}

/** Throws when the signature is nobody's: then `sign` broke its promise. */
function signerOf(digest: Hex, signature: Hex): Address {
  const bytes = bytesOf(signature);
  const publicKey = recover(bytesOf(digest), bytes.subarray(0, 64), bytes[64] === 28 ? 1 : 0, false);
  if (publicKey === null) throw new Error(`The arbiter's key gave a signature of nobody: ${signature}`);
  return publicKeyToAddress(toHex(publicKey)).toLowerCase() as Address;
}

const bytesOf = (hex: Hex): Buffer => Buffer.from(hex.slice(2), "hex");
