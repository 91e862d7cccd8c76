import {
  type Address,
  type Client,
  encodeFunctionData,
  type Hex,
  hashTypedData,
  isAddressEqual,
  parseAbi,
  recoverAddress,
} from "viem";
import { call, getCode, verifyHash } from "viem/actions";
import { authorizationOf } from "./authorization.ts";
import { hasReverted } from "./revert-reason.ts";
import type { Payment } from "./schemes.ts";
import { accountForm, hasLowS, isWrapped, needsCode, unwrapped } from "./signature-forms.ts";
import type { EscrowFacts } from "./terms.ts";

const erc1271Abi = parseAbi(["function isValidSignature(bytes32 hash, bytes signature) view returns (bytes4)"]);
const VALID = "0x1626ba7e";
/** The gas limit for asking a wallet: no more than a hold gets, because the wallet may be any contract. */
const MOST_GAS = 250_000n;
/** The number of readings before an unknown payer is refused, because a lagging node may not know a new wallet yet. */
const READINGS = 3;
const BETWEEN_READINGS_MS = 250;

/**
 * Returns the payer's signature of these terms in the form that the hold needs: an account's in the form that USDC
 * accepts, or a contract's (ERC-1271), without an ERC-6492 wrapping. The terms of a hold are public; only the signature
 * keeps others from fetching the purchase.
 * @param deploys whether the hold may deploy the payer's wallet with a wrapped signature, which then remains wrapped
 * @returns null if the payer did not sign, "undeployed" if its wallet has no code to check it
 * @throws the node's error if a contract cannot be called
 */
export async function payerSignature(
  client: Client,
  escrow: EscrowFacts,
  { info, signature, deploys }: Pick<Payment, "info" | "signature"> & { readonly deploys: boolean },
): Promise<Hex | "undeployed" | null> {
  const { payer } = info;
  const hash = hashTypedData(authorizationOf(escrow, info));
  const plain = unwrapped(signature);
  if (plain === null) return null;
  const own = await accountSignature(payer, hash, plain);
  if (own !== null) return own;
  for (let reading = 1; ; reading += 1) {
    const read = await walletSignature(client, payer, { hash, signature, plain, deploys });
    if ((read !== null && read !== "undeployed") || reading === READINGS) return read;
    await new Promise((resolve) => setTimeout(resolve, BETWEEN_READINGS_MS));
  }
}

interface Asked {
  readonly hash: Hex;
  readonly signature: Hex;
  /** The signature without its wrapping. */
  readonly plain: Hex;
  readonly deploys: boolean;
}

/** Reads once whether a wallet's contract accepts a signature. */
async function walletSignature(
  client: Client,
  payer: Address,
  { hash, signature, plain, deploys }: Asked,
): Promise<Hex | "undeployed" | null> {
  if (await isAccepted(client, payer, [hash, plain])) return plain;
  if (isWrapped(signature) && deploys)
    return (await verifyHash(client, { address: payer, hash, signature })) ? signature : null;
  const lacksCode = needsCode(signature) && (await getCode(client, { address: payer })) === undefined;
  return lacksCode ? "undeployed" : null;
}

async function accountSignature(payer: Address, hash: Hex, signature: Hex): Promise<Hex | null> {
  const form = accountForm(signature);
  if (form === null || !hasLowS(form)) return null;
  const signer = await recoverAddress({ hash, signature: form }).catch(() => null);
  return signer !== null && isAddressEqual(signer, payer) ? form : null;
}

/** By ERC-1271. */
async function isAccepted(client: Client, wallet: Address, args: readonly [hash: Hex, signature: Hex]) {
  const data = encodeFunctionData({ abi: erc1271Abi, functionName: "isValidSignature", args });
  try {
    return (await call(client, { to: wallet, data, gas: MOST_GAS })).data?.startsWith(VALID) ?? false;
  } catch (error) {
    if (hasReverted(error)) return false;
    throw error;
  }
}
