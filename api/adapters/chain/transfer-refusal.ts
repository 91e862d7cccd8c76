import type { PublicClient } from "viem";
import { usdcAbi } from "../../../contracts/abi.ts";
import type { NetworkFacts } from "../../kernel/networks.ts";
import type { Hex } from "../../kernel/wallet.ts";
import type { Authorization } from "../../payments/scheme.ts";
import { isTransport, revertReason } from "./rpc-errors.ts";

interface SignedTransfer {
  readonly authorization: Authorization;
  readonly signature: Hex;
}

const REFUSALS: readonly (readonly [RegExp, string])[] = [
  [/exceeds balance/i, "The payer's USDC balance is too low for this payment."],
  [/blacklist/i, "Circle has blacklisted an account in this payment, so USDC refuses the transfer."],
  [/paused/i, "USDC transfers are currently paused; nothing was charged."],
  [/used or canceled/i, "This authorization's nonce has already been used or canceled."],
  [/invalid signature/i, "The USDC contract rejects the signature."],
  [/not yet valid/i, "The authorization is not valid yet."],
  [/expired/i, "The authorization has expired."],
];

/** Simulates the transfer of an authorization: null if it would succeed, else the token's reason for refusing. */
export async function transferRefusal(
  client: PublicClient,
  { usdc }: NetworkFacts,
  { authorization, signature }: SignedTransfer,
): Promise<string | null> {
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  try {
    await client.simulateContract({
      address: usdc.address,
      abi: usdcAbi,
      functionName: "transferWithAuthorization",
      args: [from, to, value, validAfter, validBefore, nonce, signature],
    });
    return null;
  } catch (error) {
    if (isTransport(error)) throw error;
    const reason = revertReason(error);
    return (
      REFUSALS.find(([pattern]) => pattern.test(reason))?.[1] ?? `The USDC contract refuses the transfer: ${reason}.`
    );
  }
}
