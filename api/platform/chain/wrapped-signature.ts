import {
  BaseError,
  ExecutionRevertedError,
  encodeDeployData,
  erc6492SignatureValidatorAbi,
  erc6492SignatureValidatorByteCode,
  type PublicClient,
} from "viem";
import type { Address, Hex } from "../wallet.ts";
import { isOutOfGas } from "./rpc-errors.ts";

/** Room to deploy a wallet, ask it, and run the validator itself; a factory that wants more gets an error. */
const MOST_GAS = 2_000_000n;
const VALID = "0x01";

/**
 * Whether a wallet that may have no code yet signed the digest (ERC-6492): the reference validator deploys it within the
 * call, by the factory that the signature names, and asks it by ERC-1271. Nothing is sent. Rejects if the chain cannot
 * be read.
 */
export async function isSignedByWrapped(
  client: PublicClient,
  { payer, digest, signature }: { readonly payer: Address; readonly digest: Hex; readonly signature: Hex },
): Promise<boolean> {
  const data = encodeDeployData({
    abi: erc6492SignatureValidatorAbi,
    bytecode: erc6492SignatureValidatorByteCode,
    args: [payer, digest, signature],
  });
  try {
    return (await client.call({ data, gas: MOST_GAS })).data === VALID;
  } catch (error) {
    if (isRefusal(error)) return false;
    throw error;
  }
}

/** The factory did not deploy the wallet, the wallet refused to answer, or either used up all gas. */
const isRefusal = (error: unknown): boolean =>
  isOutOfGas(error) ||
  (error instanceof BaseError && error.walk((cause) => cause instanceof ExecutionRevertedError) !== null);
