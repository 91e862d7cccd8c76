import { encodeFunctionData } from "viem";
import { escrowAbi } from "../../../contracts/abi.ts";
import type { EscrowSender, OverdueHolds } from "../../escrow/escrow-ports.ts";
import type { Network } from "../../kernel/networks.ts";
import type { Address, Hex } from "../../kernel/wallet.ts";
import type { EscrowIndex } from "../index/escrow.ts";
import type { Relayer } from "./relayer.ts";

const NO_RECORD = `0x${"00".repeat(32)}` as const;

/** The arbiter's own key is the relayer's, so it sends directly. Null if no escrow contract is configured. */
export function createEscrowSender(relayer: Relayer | null): EscrowSender {
  const send = async (to: Address, data: Hex): Promise<Hex> => {
    if (relayer === null)
      throw new Error("no arbiter is configured: ESCROW_ADDRESSES and ARBITER_PRIVATE_KEY are missing");
    return relayer.send({ to, data });
  };
  return {
    async send({ contract, info, decision, record }) {
      const args = [info, record ?? NO_RECORD, "0x"] as const;
      return send(contract, encodeFunctionData({ abi: escrowAbi, functionName: decision, args }));
    },
    async waitFor(transaction, timeoutMs) {
      const receipt = await relayer?.waitFor(transaction, timeoutMs).catch(() => null);
      if (!receipt) return "pending";
      return receipt.status === "success" ? "mined" : "reverted";
    },
  };
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
