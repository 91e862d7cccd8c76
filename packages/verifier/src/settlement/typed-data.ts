import {
  compactSignatureToSignature,
  type Hex,
  hashTypedData,
  isErc6492Signature,
  parseCompactSignature,
  parseErc6492Signature,
  recoverAddress,
} from "viem";
import { NETWORKS, type Network } from "../networks.ts";
import type { JsonObject } from "../strict-json.ts";

const FIELDS = [
  { name: "from", type: "address" },
  { name: "to", type: "address" },
  { name: "value", type: "uint256" },
  { name: "validAfter", type: "uint256" },
  { name: "validBefore", type: "uint256" },
  { name: "nonce", type: "bytes32" },
];

/** The two forms that USDC accepts (EIP-3009). */
const FORMS = ["TransferWithAuthorization", "ReceiveWithAuthorization"];

/**
 * Returns the digest that a payer signs (EIP-712) for this authorization; null for an unknown chain, form, or member.
 */
export function digestOf(authorization: JsonObject, network: string, form: string): Hex | null {
  if (!Object.hasOwn(NETWORKS, network) || !FORMS.includes(form)) return null;
  const { chainId, usdc } = NETWORKS[network as Network];
  try {
    return hashTypedData({
      domain: { name: usdc.name, version: "2", chainId, verifyingContract: usdc.address },
      types: { [form]: FIELDS },
      primaryType: form,
      message: authorization,
    });
  } catch {
    return null;
  }
}

/**
 * Returns the account that signed a digest, in lowercase; null for bytes that no account could have produced. Wallets
 * write 65 bytes or 64 (ERC-2098), and may wrap them (ERC-6492).
 */
export async function recovered(digest: Hex, signature: string): Promise<string | null> {
  try {
    const plain = isErc6492Signature(signature as Hex)
      ? parseErc6492Signature(signature as Hex).signature
      : (signature as Hex);
    const form = /^0x[0-9a-f]{128}$/i.test(plain) ? compactSignatureToSignature(parseCompactSignature(plain)) : plain;
    return (await recoverAddress({ hash: digest, signature: form })).toLowerCase();
  } catch {
    return null;
  }
}
