import type { Address, Hex } from "viem";
import { expect } from "vitest";
import { escrowEventsAbi } from "../../../contracts/abi.ts";
import { type PaymentStatus, readPayment } from "../../../packages/escrow/src/index.ts";
import { startTestChain, type TestChain } from "../chain/chain.ts";
import { startService, type TestService } from "../service/service.ts";
import { type ArbiterFront, startArbiterFront } from "./arbiter-front.ts";
import { deployEscrow, type TestEscrow } from "./contract.ts";
import { deployOperator } from "./operator.ts";
import type { Pays } from "./purchase.ts";

/**
 * Where merchants sell: a chain, an escrow and an operator, the service that arbitrates both, and a way to cut it off.
 */
export interface SaleScene {
  readonly chain: TestChain;
  readonly escrow: TestEscrow;
  readonly operator: TestEscrow;
  readonly service: TestService;
  readonly arbiter: ArbiterFront;
  readonly stop: () => Promise<void>;
}

export async function startSaleScene(): Promise<SaleScene> {
  const chain = await startTestChain();
  const [escrow, operator] = [await deployEscrow(chain), await deployOperator(chain)];
  await chain.caughtUp();
  const config = { escrowAddresses: [escrow.address, operator.address] };
  const service = await startService({ chain, config });
  const arbiter = await startArbiterFront(service.url);
  return {
    chain,
    escrow,
    operator,
    service,
    arbiter,
    async stop() {
      arbiter.stop();
      await service.stop();
      await chain.stop();
    },
  };
}

/** What the contract says of a payment that was paid by our scheme, or by the stock client's. */
export const statusOf = async (
  { chain, escrow, operator }: Pick<SaleScene, "chain" | "escrow"> & Partial<SaleScene>,
  id: Hex,
  pays: Pays = "commerce",
): Promise<PaymentStatus> => {
  const { address } = pays === "commerce" ? escrow : (operator ?? expect.fail("There is no operator."));
  return (await readPayment(chain.client, address, id)).status;
};

/** How many holds of this payer the chain shows, in both contracts. */
export async function holdsBy({ chain, escrow, operator }: SaleScene, payer: Address): Promise<number> {
  const address = [escrow.address, operator.address];
  const filter = { address, abi: escrowEventsAbi, eventName: "Held", args: { payer } } as const;
  return (await chain.client.getContractEvents({ ...filter, fromBlock: 0n })).length;
}
