import {
  type Client,
  encodeFunctionData,
  type Hex,
  hashTypedData,
  isAddressEqual,
  parseAbi,
  recoverAddress,
} from "viem";
import { call, verifyHash } from "viem/actions";
import { AUTH_CAPTURE } from "./auth-capture/terms.ts";
import { isWrapped } from "./auth-capture/wrapped-signature.ts";
import { authorizationOf } from "./authorization.ts";
import type { PaymentInfo } from "./payment-info.ts";
import { hasReverted } from "./revert-reason.ts";
import type { EscrowFacts } from "./terms.ts";

const erc1271Abi = parseAbi(["function isValidSignature(bytes32 hash, bytes signature) view returns (bytes4)"]);
const VALID = "0x1626ba7e";
/** What asking a wallet may use: no more than a hold gets, since the wallet may be anybody's contract. */
const MOST_GAS = 250_000n;

/**
 * Whether the payer signed these terms, as an account or as a contract (ERC-1271); for an operator also as one that is
 * not deployed yet (ERC-6492), so look at its factory first. Held terms are public: only the
 * signature keeps others from fetching the purchase.
 * @throws the node's error if a contract cannot be asked
 */
export async function isSignedByPayer(
  client: Client,
  escrow: EscrowFacts,
  { info, signature }: { readonly info: PaymentInfo; readonly signature: Hex },
): Promise<boolean> {
  const hash = hashTypedData(authorizationOf(escrow, info));
  if (escrow.scheme === AUTH_CAPTURE && isWrapped(signature))
    return verifyHash(client, { address: info.payer, hash, signature });
  const signer = await recoverAddress({ hash, signature }).catch(() => null);
  if (signer !== null && isAddressEqual(signer, info.payer)) return true;
  const data = encodeFunctionData({ abi: erc1271Abi, functionName: "isValidSignature", args: [hash, signature] });
  try {
    return (await call(client, { to: info.payer, data, gas: MOST_GAS })).data?.startsWith(VALID) ?? false;
  } catch (error) {
    if (hasReverted(error)) return false;
    throw error;
  }
}
