import { toHex } from "viem";
import type { SigningAccount } from "../platform/chain/accounts.ts";
import { keccak256 } from "../platform/chain/typed-data.ts";
import type { Hex } from "../platform/wallet.ts";
import type { Verdict } from "./policy/policy.ts";

/** The facts of a verdict that a contract checks. */
export interface VerdictFacts {
  /** The verdict's id. */
  readonly id: string;
  readonly outcome: Verdict;
  /** 64 hex digits, as in the document. */
  readonly conditionsSha256: string;
  readonly dealRef: string | null;
  readonly issuedAt: Date;
}

/** The account that signs verdicts for contracts. */
export type Attestor = Pick<SigningAccount, "address" | "signTypedData">;

/** The EIP-712 type the arbiter signs. */
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

export type Attestation = Awaited<ReturnType<typeof attest>>;

/**
 * Returns the EIP-712 signature of a verdict, as published in the document. `contracts/VerdictLib.sol` checks it on
 * chain. `issuedAt` is in Unix seconds, rounded down.
 */
export async function attest(facts: VerdictFacts, chainId: number, attestor: Attestor) {
  const message = {
    id: facts.id,
    outcome: facts.outcome,
    conditionsSha256: `0x${facts.conditionsSha256}` as Hex,
    dealRefHash: keccak256(toHex(facts.dealRef ?? "")),
    issuedAt: Math.floor(facts.issuedAt.getTime() / 1000),
  };
  const signed = { domain: attestationDomain(chainId), types: VERDICT_TYPES, primaryType: "Verdict", message } as const;
  const data = { ...message, issuedAt: BigInt(message.issuedAt) };
  const signature = await attestor.signTypedData({ ...signed, message: data });
  return { ...signed, signer: attestor.address, signature } as const;
}
