import { buildModule } from "@nomicfoundation/hardhat-ignition/modules";

/** The operator. Its parameters are the addresses of base/commerce-payments, of USDC on the chain, and of the roles. */
export default buildModule("ArbiterOperator", (m) => {
  const custody = [m.getParameter("escrow"), m.getParameter("collector")];
  const roles = [m.getParameter("usdc"), m.getParameter("arbiter"), m.getParameter("feeRecipient")];
  return { operator: m.contract("ArbiterOperator", [...custody, ...roles, m.getParameter("feeIsAmount")]) };
});
