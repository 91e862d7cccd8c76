import { type Address, type Client, getAddress, zeroAddress } from "viem";
import { readContract } from "viem/actions";
import { escrowAbi } from "./abi.ts";
import { AUTH_CAPTURE } from "./auth-capture/terms.ts";
import { type EscrowFacts, escrowAt } from "./terms.ts";

/** The contract that holds the money of a contract's payments, and the one that collects it. */
export type Custody = Pick<EscrowFacts, "scheme" | "address" | "custody" | "collector">;

/**
 * Asks a contract which one holds the money: an `ArbiterOperator.sol` names the escrow and the collector of
 * base/commerce-payments; an `Escrow.sol` does everything itself and has `owed`.
 * @throws viem's error if the node does not respond, or the contract is neither
 */
export async function readCustody(client: Client, address: Address): Promise<Custody> {
  const contract = { address, abi: escrowAbi } as const;
  try {
    const [custody, collector] = await Promise.all([
      readContract(client, { ...contract, functionName: "ESCROW" }),
      readContract(client, { ...contract, functionName: "COLLECTOR" }),
    ]);
    return { scheme: AUTH_CAPTURE, address: getAddress(address), custody, collector };
  } catch {
    // Nodes report a missing function in as many ways as their own failures, so only a result counts.
    await readContract(client, { ...contract, functionName: "owed", args: [zeroAddress] });
    return escrowAt(getAddress(address));
  }
}
