import { hashMessage } from "viem";
import type { ContractWord, PayeeSignature } from "../../seller-exam/signed-consent.ts";
import type { ChainReader } from "./chain-reader.ts";
import { ERC1271, ERC1271_MAGIC } from "./contract-signatures.ts";
import { AT_BLOCK, MULTICALL3 } from "./multicall.ts";
import { discreet, isTransport } from "./rpc-errors.ts";

/** Reads what a payee's contract says of a signature, in one call, so that it comes from one node at one block. */
export const createContractWord = ({ client }: Pick<ChainReader, "client">) =>
  discreet(async ({ payTo, text, signature }: PayeeSignature): Promise<ContractWord> => {
    const asked = { address: payTo, abi: ERC1271, functionName: "isValidSignature" } as const;
    const [, time, answer] = await client.multicall({
      allowFailure: true,
      multicallAddress: MULTICALL3,
      batchSize: 0,
      contracts: [...AT_BLOCK, { ...asked, args: [hashMessage(text), signature] }],
    });
    if (time.status === "success")
      return { time: Number(time.result), isSigned: answer.status === "success" && answer.result === ERC1271_MAGIC };
    // A contract that uses up all there is takes the rest of the call with it.
    if (isTransport(time.error)) throw time.error;
    const { timestamp } = await client.getBlock();
    return { time: Number(timestamp), isSigned: false };
  });
