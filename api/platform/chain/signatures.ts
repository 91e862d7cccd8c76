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

/** Room to deploy a wallet, ask it, and run the validator itself; a factory that wants more gets an error. */
const MOST_GAS = 2_000_000n;
const VALID = "0x01";

/**
 * Whether a wallet that may have no code yet signed the digest (ERC-6492): the reference validator deploys it within the
 * call, by the factory that the signature names, and asks it by ERC-1271. Nothing is sent. Rejects if the chain cannot
 * be read.
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

/** The factory did not deploy the wallet, the wallet refused to answer, or either used up all gas. */
const isRefusal = (error: unknown): boolean =>
  isOutOfGas(error) ||
  (error instanceof BaseError && error.walk((cause) => cause instanceof ExecutionRevertedError) !== null);

/** Not called a view, because viem takes a gas limit for a simulation and none for a view. Both are an `eth_call`. */
export const ERC1271 = parseAbi(["function isValidSignature(bytes32 hash, bytes signature) returns (bytes4)"]);
const ERC1271_MAGIC = "0x1626ba7e";
/** Wrong signatures of one payer cost one look at its code in this time: two blocks, because a wallet may be deployed now. */
const CODE_CACHE_MS = 4_000;
/** What strangers can have asked with signatures that cost them nothing: so many calls at once, in one batch. */
const STRANGERS = { most: 20, everyMs: 100, mostWaiting: 1_000 };

/** What a wallet may use to check a signature. With more, its payment would not fit into a payment's gas limit. */
const CHECK_GAS = 500_000n;

interface Reading {
  /** Calls the account no matter what is remembered of its code. */
  readonly afresh?: boolean;
  /** Default: the head. */
  readonly block?: number | null;
}

export interface ContractSignatures {
  /** By ERC-1271, without an ERC-6492 wrapping; false for an account without code. */
  readonly verifyContractSignature: (signed: PayerSignature, asker: Asker, reading?: Reading) => Promise<boolean>;
  readonly isDeployed: (account: Address, asker: Asker) => Promise<boolean>;
  /** By ERC-6492: of a wallet that may have no code yet. */
  readonly verifyWrappedSignature: (signed: PayerSignature, asker: Asker) => Promise<boolean>;
}

/**
 * Verifies signatures that only a contract knows. Anybody can send any number of signatures that nobody has made, of ever
 * new accounts or of one, so clients take turns for whatever asks the chain.
 * @param single sends each call in a request of its own, so that a wallet's slow code holds up no other call
 */
export function createContractSignatures(client: PublicClient, single: NodesClient = client): ContractSignatures {
  const coded = createRecent<boolean>(CODE_CACHE_MS);
  const turn = paced(async (turns: readonly null[]) => turns, STRANGERS);
  const isDeployed = async (account: Address, asker: Asker): Promise<boolean> => {
    const known = coded.known(account);
    if (known !== null) return known;
    // Nobody waits for another one's turn, which may never come.
    await turn(null, asker);
    return coded(account, () => hasCode(client, account));
  };
  return {
    isDeployed,
    async verifyContractSignature(signed, asker, { afresh = false, block = null } = {}) {
      const signature = unwrapped(signed.signature);
      // An account without code at an earlier block answers the call with nothing, which is no acceptance.
      const asksForCode = block === null && !afresh;
      if (signature === null || (asksForCode && !(await isDeployed(signed.payer, asker)))) return false;
      await turn(null, asker);
      const ask = (reading: number) => isAccepted(forReading(single, reading), { ...signed, signature }, block);
      // What a block of the past shows is final, so that a refusal has to be shown twice.
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

/** ERC-1271. */
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
    // At a block of the past it is asked once and for all: only the wallet's own end of the call is an answer.
    if (block === null ? isTransport(error) : !isContracts(error)) throw error;
    return false;
  }
}
