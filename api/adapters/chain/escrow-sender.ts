import { concat, encodeFunctionData, keccak256, stringToHex } from "viem";
import { escrowAbi } from "../../../contracts/abi.ts";
import type { EscrowSender, OverdueHolds } from "../../escrow/escrow-ports.ts";
import type { Network } from "../../kernel/networks.ts";
import type { Hex } from "../../kernel/wallet.ts";
import type { EscrowIndex } from "../index/escrow.ts";
import type { Relayer } from "./relayer/relayer.ts";
import { MOST_GAS } from "./simulation.ts";

const NO_RECORD = `0x${"00".repeat(32)}` as const;

/** The arbiter's own key is the relayer's, so it sends directly. Null if no escrow contract is configured. */
export function createEscrowSender(relayer: Relayer | null): EscrowSender {
  return {
    async send({ contract, info, payment, decision, record }) {
      if (relayer === null)
        throw new Error("no arbiter is configured: ESCROW_ADDRESSES and ARBITER_PRIVATE_KEY are missing");
      const args = [info, record ?? NO_RECORD, "0x"] as const;
      const data = encodeFunctionData({ abi: escrowAbi, functionName: decision, args });
      const purpose = await openPurpose(relayer, keccak256(concat([payment, stringToHex(decision)])));
      return relayer.send({ to: contract, data, gas: MOST_GAS, purpose });
    },
    async waitFor(transaction, timeoutMs) {
      const receipt = await relayer?.waitFor(transaction, timeoutMs).catch(() => null);
      if (!receipt) return "pending";
      return receipt.status === "success" ? "mined" : "reverted";
    },
  };
}

/**
 * An outcome is owed however often it reverts, while USDC is paused for example, and no stranger's code can make it
 * revert. So each attempt has a purpose of its own that follows from those before.
 */
async function openPurpose(relayer: Relayer, purpose: Hex): Promise<Hex> {
  const reverted = await relayer.failed(purpose);
  return reverted === null ? purpose : openPurpose(relayer, keccak256(concat([purpose, reverted])));
}

/** Holds past their 30 minutes, according to the index. */
export const createOverdueHolds = (index: EscrowIndex, network: Network): OverdueHolds => ({
  async overdue(now, limit) {
    const found = await index.overdue(now, limit);
    return (
      found?.map(({ id, contract, terms, refundableFrom, held }) => ({
        network,
        contract,
        id,
        info: terms,
        transaction: held.transaction,
        block: held.block,
        refundableFrom,
      })) ?? null
    );
  },
});
