import {
  BaseError,
  type Client,
  ExecutionRevertedError,
  encodeFunctionData,
  type Hex,
  hashTypedData,
  isAddressEqual,
  parseAbi,
  recoverAddress,
} from "viem";
import { call } from "viem/actions";
import { authorizationOf } from "./authorization.ts";
import type { PaymentInfo } from "./payment-info.ts";
import type { EscrowFacts } from "./terms.ts";

const erc1271Abi = parseAbi(["function isValidSignature(bytes32 hash, bytes signature) view returns (bytes4)"]);
const VALID = "0x1626ba7e";

/**
 * Whether the payer signed these terms, as an account or as a contract (ERC-1271). Held terms are public: only the
 * signature keeps others from fetching the purchase.
 * @throws the node's error if a contract cannot be asked
 */
export async function isSignedByPayer(
  client: Client,
  escrow: EscrowFacts,
  { info, signature }: { readonly info: PaymentInfo; readonly signature: Hex },
): Promise<boolean> {
  const hash = hashTypedData(authorizationOf(escrow, info));
  const signer = await recoverAddress({ hash, signature }).catch(() => null);
  if (signer !== null && isAddressEqual(signer, info.payer)) return true;
  const data = encodeFunctionData({ abi: erc1271Abi, functionName: "isValidSignature", args: [hash, signature] });
  try {
    return (await call(client, { to: info.payer, data })).data?.startsWith(VALID) ?? false;
  } catch (error) {
    if (error instanceof BaseError && error.walk((cause) => cause instanceof ExecutionRevertedError)) return false;
    throw error;
  }
}
