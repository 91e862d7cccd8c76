import { NETWORKS } from "../../platform/networks.ts";
import type { PaymentKey } from "../../platform/http/route.ts";
import type { Address, Hex } from "../../platform/wallet.ts";
import { authorizationTypedData, authorizationWire } from "../../payments/schemes/exact/authorization.ts";
import type { Behaviour } from "../certificate.ts";

/**
 * A signature that was answered and never submitted. The authorization's times are in unix seconds, its value in atomic
 * USDC.
 */
export interface WithheldSignature {
  /** The certificate it led to. */
  readonly certificate: string;
  readonly payment: PaymentKey;
  readonly payTo: Address;
  readonly value: bigint;
  readonly validAfter: bigint;
  readonly validBefore: bigint;
  readonly receivedAt: Date;
  readonly digest: Hex;
  readonly signature: Hex;
}

const DOMAIN = [
  { name: "name", type: "string" },
  { name: "version", type: "string" },
  { name: "chainId", type: "uint256" },
  { name: "verifyingContract", type: "address" },
];

/**
 * The complete proof of a FAIL: hashing `typed_data` (EIP-712) gives `digest`, and recovering the signer of `signature`
 * over it gives `signer`. `broadcast`: someone used the authorization on chain after all.
 */
export function proofDocument(withheld: WithheldSignature, bait: Behaviour["bait"], broadcast: boolean) {
  const { payment, payTo, value, validAfter, validBefore } = withheld;
  const message = { from: payment.payer, to: payTo, value, validAfter, validBefore, nonce: payment.nonce };
  const { domain, types, primaryType } = authorizationTypedData(message, NETWORKS[payment.network]);
  return {
    certificate: withheld.certificate,
    challenge: { served_at: bait.served_at, pay_to: bait.pay_to, amount: bait.amount },
    typed_data: { types: { EIP712Domain: DOMAIN, ...types }, domain, primaryType, message: authorizationWire(message) },
    digest: withheld.digest,
    signature: withheld.signature,
    signer: payment.payer,
    valid_before: validBefore.toString(),
    received_at: withheld.receivedAt.toISOString(),
    broadcast,
  };
}
