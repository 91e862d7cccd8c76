import {
  BaseError,
  ExecutionRevertedError,
  encodeDeployData,
  erc6492SignatureValidatorAbi,
  erc6492SignatureValidatorByteCode,
  type PublicClient,
  parseAbi,
} from "viem";
import { unwrapped } from "../../../packages/escrow/src/signature-forms.ts";
import type { Asker } from "../http/request.ts";
import type { Address, Hex } from "../wallet.ts";
import { createRecent } from "./batcher.ts";
import { forReading, type NodesClient } from "./failover.ts";
import { paced } from "./pace.ts";
import { isContracts, isOutOfGas, isTransport } from "./rpc.ts";
import type { PayerSignature } from "./view.ts";

/** Enough gas to deploy a wallet, call it, and run the validator itself. A factory that needs more gets an error. */
const MOST_GAS = 2_000_000n;
const VALID = "0x01";

/**
 * Whether a wallet that may not have code yet signed the digest (ERC-6492). The reference validator deploys it within
 * the call, using the factory that the signature names, and calls it by ERC-1271. No transaction is sent. Rejects if
 * the chain cannot be read.
 */
async function isSignedByWrapped(
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

/** True if the factory did not deploy the wallet, the wallet did not answer, or either used up all gas. */
const isRefusal = (error: unknown): boolean =>
  isOutOfGas(error) ||
  (error instanceof BaseError && error.walk((cause) => cause instanceof ExecutionRevertedError) !== null);

/**
 * Not declared a view, because viem accepts a gas limit for a simulation but not for a view. Both are an `eth_call`.
 */
export const ERC1271 = parseAbi(["function isValidSignature(bytes32 hash, bytes signature) returns (bytes4)"]);
const ERC1271_MAGIC = "0x1626ba7e";
/**
 * How long an account's lack of code is cached, so that wrong signatures of one payer cost one call: two blocks,
 * because a wallet may be deployed at any time.
 */
const CODE_CACHE_MS = 4_000;
/** The limits on calls for unpaid requests, whose signatures cost nothing. One batch has at most `most` calls. */
const STRANGERS = { most: 20, everyMs: 100, mostWaiting: 1_000 };

/** The gas limit of a wallet's signature check. A wallet that needs more would not fit into a payment's gas limit. */
const CHECK_GAS = 500_000n;

interface Reading {
  /** Calls the account even if it was recently without code. */
  readonly afresh?: boolean;
  /** By default, the head. */
  readonly block?: number | null;
}

/** Rejects some requests of clients that make too many. */
export interface ContractSignatures {
  /** Verifies by ERC-1271, without an ERC-6492 wrapping; false for an account without code. */
  readonly verifyContractSignature: (signed: PayerSignature, asker: Asker, reading?: Reading) => Promise<boolean>;
  /** Whether an account has code. */
  readonly isDeployed: (account: Address, asker: Asker) => Promise<boolean>;
  /** Verifies by ERC-6492, for a wallet that may not have code yet. */
  readonly verifyWrappedSignature: (signed: PayerSignature, asker: Asker) => Promise<boolean>;
}

/**
 * Verifies signatures that only a contract can check. Anyone can send unlimited invalid signatures, from ever new
 * accounts or from one, so clients take turns for every call to the chain.
 * @param single sends each call in a separate request, so that a wallet's slow code delays no other call
 */
export function createContractSignatures(client: PublicClient, single: NodesClient = client): ContractSignatures {
  const coded = createRecent<boolean>(CODE_CACHE_MS);
  const turn = paced(async (turns: readonly null[]) => turns, STRANGERS);
  const isDeployed = async (account: Address, asker: Asker): Promise<boolean> => {
    const known = coded.known(account);
    if (known !== null) return known;
    // No request waits for the turn of another one, which may never come.
    await turn(null, asker);
    return coded(account, () => hasCode(client, account));
  };
  return {
    isDeployed,
    async verifyContractSignature(signed, asker, { afresh = false, block = null } = {}) {
      const signature = unwrapped(signed.signature);
      // An account without code at an earlier block returns empty data, which is not an acceptance.
      const asksForCode = block === null && !afresh;
      if (signature === null || (asksForCode && !(await isDeployed(signed.payer, asker)))) return false;
      await turn(null, asker);
      const ask = (reading: number) => isAccepted(forReading(single, reading), { ...signed, signature }, block);
      // A refusal at a past block is final, so a second node has to confirm it.
      return (await ask(0)) || (block !== null && ask(1));
    },
    async verifyWrappedSignature(signed, asker) {
      await turn(null, asker);
      return isSignedByWrapped(single, signed);
    },
  };
}

async function hasCode(client: PublicClient, address: Address): Promise<boolean> {
  const code = await client.getCode({ address });
  return code !== undefined && code !== "0x";
}

/** Calls the wallet by ERC-1271. */
async function isAccepted(
  client: PublicClient,
  { payer, digest, signature }: PayerSignature,
  block: number | null,
): Promise<boolean> {
  try {
    const { result } = await client.simulateContract({
      address: payer,
      abi: ERC1271,
      functionName: "isValidSignature",
      args: [digest, signature],
      gas: CHECK_GAS,
      ...(block === null ? {} : { blockNumber: BigInt(block) }),
    });
    return result === ERC1271_MAGIC;
  } catch (error) {
    // The result at a past block is final, so only the wallet's own result counts.
    if (block === null ? isTransport(error) : !isContracts(error)) throw error;
    return false;
  }
}
