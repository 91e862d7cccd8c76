import { type Hex, hashTypedData, recoverAddress } from "viem";
import type { Kind, Payload } from "./statement.ts";

const text = (name: string) => ({ name, type: "string" });
const number = (name: string) => ({ name, type: "uint256" });

/** In the order in which the members are signed (x402, extension `offer-receipt`). */
const TYPES = {
  offer: {
    Offer: [
      number("version"),
      ...["resourceUrl", "scheme", "network", "asset", "payTo", "amount"].map(text),
      number("validUntil"),
    ],
  },
  receipt: {
    Receipt: [
      number("version"),
      ...["network", "resourceUrl", "payer"].map(text),
      number("issuedAt"),
      text("transaction"),
    ],
  },
};

/** Returns the account that signed, in lowercase, or null for bytes that no account could have produced. */
export async function signerOf(kind: Kind, payload: Payload, signature: string): Promise<string | null> {
  if (!/^0x[0-9a-f]{130}$/i.test(signature)) return null;
  const hash = hashTypedData({
    // The chain id is always 1, whatever the network: the domain belongs to the extension, not to a contract.
    domain: { name: `x402 ${kind}`, version: "1", chainId: 1 },
    types: TYPES[kind] as Record<string, { name: string; type: string }[]>,
    primaryType: kind === "offer" ? "Offer" : "Receipt",
    message: payload,
  });
  const signer = await recoverAddress({ hash, signature: signature as Hex }).catch(() => null);
  return signer?.toLowerCase() ?? null;
}
