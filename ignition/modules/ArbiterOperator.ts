import { buildModule } from "@nomicfoundation/hardhat-ignition/modules";

/** The operator; its parameters are base/commerce-payments, USDC's address on the chain and the roles. */
export default buildModule("ArbiterOperator", (m) => {
  const custody = [m.getParameter("escrow"), m.getParameter("collector")];
  const roles = [m.getParameter("usdc"), m.getParameter("arbiter"), m.getParameter("feeRecipient")];
  return { operator: m.contract("ArbiterOperator", [...custody, ...roles, m.getParameter("feeIsAmount")]) };
});
