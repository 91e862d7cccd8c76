import { getContractAddress } from "viem";
import ArbiterEvaluator from "../ignition/modules/ArbiterEvaluator.ts";
import { deployWithRoles } from "./deploy-connection.ts";

/** What evaluators are clones of is the first contract that their maker makes. */
const HAND_NONCE = 1n;

/** Deploys the evaluator of ERC-8183 jobs. */
export const deployEvaluator = deployWithRoles({
  title: "evaluator",
  contract: "ArbiterEvaluator",
  argumentsOf: ({ arbiter, feeRecipient }) => [arbiter, feeRecipient],
  immutablesOf: (address) => [getContractAddress({ from: address, nonce: HAND_NONCE })],
  create: async (ignition, deploymentId, { arbiter, feeRecipient }) =>
    (
      await ignition.deploy(ArbiterEvaluator, {
        deploymentId,
        parameters: { ArbiterEvaluator: { arbiter, feeRecipient } },
      })
    ).evaluator,
});
