import { requireCommercePayments } from "../api/payments/settle/holds.ts";
import { COMMERCE_PAYMENTS } from "../contracts/commerce-payments.ts";
import ArbiterOperator from "../ignition/modules/ArbiterOperator.ts";
import { deployWithRoles } from "./deploy-connection.ts";

const { escrow, collector, feeIsAmount } = COMMERCE_PAYMENTS;

/** Deploys the operator over base/commerce-payments, which the chain must have. */
export const deployOperator = deployWithRoles({
  title: "operator",
  contract: "ArbiterOperator",
  argumentsOf: ({ usdc, arbiter, feeRecipient }) => [escrow, collector, usdc, arbiter, feeRecipient, feeIsAmount],
  demand: requireCommercePayments,
  create: async (ignition, deploymentId, roles) => {
    const parameters = { ArbiterOperator: { ...COMMERCE_PAYMENTS, ...roles } };
    return (await ignition.deploy(ArbiterOperator, { deploymentId, parameters })).operator;
  },
});
