import {
  BaseError,
  ContractFunctionZeroDataError,
  concat,
  encodeFunctionData,
  keccak256,
  numberToHex,
  sha256,
  stringToHex,
  toHex,
} from "viem";
import { LOG_ANCHOR, logAnchorAbi } from "../../../contracts/log-anchor.ts";
import type { ChainReader } from "../../platform/chain/chain.ts";
import { discreet } from "../../platform/chain/rpc.ts";
import { PATIENT_FEE } from "../../platform/relayer/fees.ts";
import type { Relayer } from "../../platform/relayer/relayer.ts";
import type { Anchor, Progress } from "./store.ts";

/** An account's first anchor takes 69,253 gas, each later one 32,253 (`npm run bench:gas`). */
const ANCHOR_GAS = 120_000n;
const MINED_WITHIN_MS = 20_000;

export interface LogAnchorParts {
  readonly chain: Pick<ChainReader, "client" | "finalizedBlock">;
  readonly relayer: Relayer;
  /** The time to wait for an anchor. A later run finds an anchor that is mined after that. */
  readonly minedWithinMs?: number;
}

const originHash = (origin: string) => sha256(stringToHex(origin));

/** The purpose identifies the anchor, so that a restarted process finds the transaction it sent. */
const purposeOf = (origin: string, { size, root }: Pick<Anchor, "size" | "root">) =>
  keccak256(concat([LOG_ANCHOR.address, originHash(origin), numberToHex(size, { size: 8 }), toHex(root)]));

export type AnchorChain = ReturnType<typeof createLogAnchors>;

/** Anchors the log in `contracts/LogAnchor.sol` from the relayer's account. */
export function createLogAnchors({ chain, relayer, minedWithinMs = MINED_WITHIN_MS }: LogAnchorParts) {
  const { client } = chain;
  /** Returns this account's newest anchor, or null. Rejects while the chain is unreachable. */
  const newest = async (origin: string) => {
    const args = [relayer.address, originHash(origin)] as const;
    const call = { address: LOG_ANCHOR.address, abi: logAnchorAbi, functionName: "latest", args } as const;
    const found = await client.readContract(call).catch(nullIfNoContract);
    if (found === null || found[0] === 0n) return null;
    return { size: Number(found[0]), block: Number(found[1]), root: Buffer.from(found[2].slice(2), "hex") };
  };
  /**
   * Sends the anchor unless it was sent before, and returns its progress. Reads the chain's state first, because it
   * outlives our record of the transactions.
   */
  const carry = async (origin: string, anchor: Anchor): Promise<Progress> => {
    const sending = { state: "sending", transaction: anchor.transaction, block: null } as const;
    const purpose = purposeOf(origin, anchor);
    const known = await newest(origin);
    if (known !== null && known.size > anchor.size && !(await relayer.isSent(purpose)))
      return { ...sending, state: "failed" };
    const { size, root } = anchor;
    const args = [originHash(origin), BigInt(size), toHex(root)] as const;
    const data = encodeFunctionData({ abi: logAnchorAbi, functionName: "anchor", args });
    if (known !== null && known.size === size && !(await relayer.isSent(purpose)))
      return {
        state: Buffer.compare(known.root, root) === 0 ? "final" : "failed",
        transaction: null,
        block: known.block,
      };
    // Without code at the address, the call would succeed and do nothing.
    if (known === null && (await client.getCode({ address: LOG_ANCHOR.address })) === undefined) return sending;
    let transaction: `0x${string}`;
    try {
      transaction = await relayer.send({
        to: LOG_ANCHOR.address,
        data,
        gas: ANCHOR_GAS,
        purpose,
        lane: "statement",
        mostFee: PATIENT_FEE,
      });
    } catch {
      const reverted = await relayer.failed(purpose);
      return reverted === null ? sending : { state: "failed", transaction: reverted, block: null };
    }
    const receipt = await relayer.waitFor(transaction, minedWithinMs).catch(() => null);
    if (receipt === null) return { ...sending, transaction };
    if (receipt.status === "reverted") return { ...sending, state: "failed", transaction: receipt.transactionHash };
    const block = Number(receipt.blockNumber);
    const isFinal = block <= (await chain.finalizedBlock());
    return { state: isFinal ? "final" : "mined", transaction: receipt.transactionHash, block };
  };
  return { newest: discreet(newest), carry: discreet(carry) };
}

function nullIfNoContract(error: unknown): null {
  if (error instanceof BaseError && error.walk((cause) => cause instanceof ContractFunctionZeroDataError) !== null)
    return null;
  throw error;
}
