import type { Address, Hex } from "viem";
import { escrowEventsAbi } from "../../../contracts/abi.ts";
import { type PaymentStatus, readPayment } from "../../../packages/escrow/src/index.ts";
import { startTestChain, type TestChain } from "../chain/chain.ts";
import { startService, type TestService } from "../service/service.ts";
import { type ArbiterFront, startArbiterFront } from "./arbiter-front.ts";
import { deployEscrow, type TestEscrow } from "./contract.ts";

/**
 * Where merchants sell through the escrow: a chain, the contract, the service that arbitrates it, and a way to cut it
 * off.
 */
export interface SaleScene {
  readonly chain: TestChain;
  readonly escrow: TestEscrow;
  readonly service: TestService;
  readonly arbiter: ArbiterFront;
  readonly stop: () => Promise<void>;
}

export async function startSaleScene(): Promise<SaleScene> {
  const chain = await startTestChain();
  const escrow = await deployEscrow(chain);
  await chain.caughtUp();
  const config = { escrowAddresses: [escrow.address] };
  const service = await startService({ chain, config });
  const arbiter = await startArbiterFront(service.url);
  return {
    chain,
    escrow,
    service,
    arbiter,
    async stop() {
      arbiter.stop();
      await service.stop();
      await chain.stop();
    },
  };
}

export const statusOf = async (
  { chain, escrow }: Pick<SaleScene, "chain" | "escrow">,
  id: Hex,
): Promise<PaymentStatus> => (await readPayment(chain.client, escrow.address, id)).status;

/** How many holds of this payer the chain shows. */
export async function holdsBy({ chain, escrow }: SaleScene, payer: Address): Promise<number> {
  const filter = { address: escrow.address, abi: escrowEventsAbi, eventName: "Held", args: { payer } } as const;
  return (await chain.client.getContractEvents({ ...filter, fromBlock: 0n })).length;
}
