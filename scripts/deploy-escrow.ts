import Escrow from "../ignition/modules/Escrow.ts";
import { deployWithRoles } from "./deploy-connection.ts";

export const deployEscrow = deployWithRoles({
  title: "escrow",
  contract: "Escrow",
  argumentsOf: ({ usdc, arbiter, feeRecipient }) => [usdc, arbiter, feeRecipient],
  create: async (ignition, deploymentId, roles) =>
    (await ignition.deploy(Escrow, { deploymentId, parameters: { Escrow: { ...roles } } })).escrow,
});
