import type { Intake } from "../../platform/http/route.ts";
import type { Address } from "../../platform/wallet.ts";
import type { RegistryOrder, TestOrder } from "./order.ts";
import type { Registries } from "./ports.ts";

const UNREADABLE =
  "The registries of ERC-8004 cannot be read at the moment. Come back, or leave erc8004 out: the test itself is for sale.";

/**
 * Asks the chain whether an order can be carried out as things are, before anything is charged. It is asked again when
 * the publication is sent.
 * @param registries null where nothing is published
 */
export const createOrderIntake =
  (registries: Registries | null) =>
  async (order: TestOrder, payer: Address): Promise<Intake<TestOrder>> => {
    if (order === null || registries === null) return { input: order };
    try {
      const problem = await problemOf(registries, order, payer);
      return problem === null ? { input: order } : { refused: [problem] };
    } catch {
      return { unavailable: UNREADABLE };
    }
  };

async function problemOf(registries: Registries, { agentId, reputation, validation }: RegistryOrder, payer: Address) {
  const agent = BigInt(agentId);
  const feedback = await registries.unfit({ agent, contract: reputation, request: null }, payer);
  if (feedback !== null)
    return {
      path: "erc8004.agentId",
      message: `the wallet of agent ${agentId} is not the payer ${payer}: results are published about the agent whose wallet was tested`,
    };
  if (validation === null) return null;
  const answer = await registries.unfit({ agent, ...validation }, payer);
  if (answer === null) return null;
  return {
    path: "erc8004.validationRequest",
    message: `no request of agent ${agentId} with this hash names ${registries.publisher} as its validator`,
  };
}
