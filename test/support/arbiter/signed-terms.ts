import { sign } from "node:crypto";
import type { LocalAccount } from "viem";
import type { SigningKey } from "../../../api/platform/signing/keys.ts";

/** The payload of an x402 offer, or of its receipt. */
export type Terms = Readonly<Record<string, string | number>>;

/** A signed offer or receipt, in x402's format. */
export interface SignedTerms {
  readonly format: "jws" | "eip712";
  readonly payload?: Terms;
  readonly signature: string;
}

const words = (names: string, type: string) => names.split(" ").map((name) => ({ name, type }));

/** In the signed order. */
const TYPES = {
  Offer: [
    ...words("version", "uint256"),
    ...words("resourceUrl scheme network asset payTo amount", "string"),
    ...words("validUntil", "uint256"),
  ],
  Receipt: [
    ...words("version", "uint256"),
    ...words("network resourceUrl payer", "string"),
    ...words("issuedAt", "uint256"),
    ...words("transaction", "string"),
  ],
};

/** Signs as EIP-712 with any payload. */
export async function typed(
  account: Pick<LocalAccount, "signTypedData">,
  primaryType: keyof typeof TYPES,
  payload: Terms,
): Promise<SignedTerms> {
  const signature = await account.signTypedData({
    domain: { name: `x402 ${primaryType.toLowerCase()}`, version: "1", chainId: 1 },
    types: TYPES as Record<string, { name: string; type: string }[]>,
    primaryType,
    message: payload,
  });
  return { format: "eip712", payload, signature };
}

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");

/** Signs as a compact JWS with this header. */
export function jws({ privateKey }: SigningKey, header: object, payload: Terms): SignedTerms {
  const signed = `${part(header)}.${part(payload)}`;
  return { format: "jws", signature: `${signed}.${sign(null, Buffer.from(signed), privateKey).toString("base64url")}` };
}
