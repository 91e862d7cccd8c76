import { buildModule } from "@nomicfoundation/hardhat-ignition/modules";

/** The escrow. Its parameters are the addresses of USDC on the chain, the arbiter, and the fee recipient. */
export default buildModule("Escrow", (m) => {
  const parameters = [m.getParameter("usdc"), m.getParameter("arbiter"), m.getParameter("feeRecipient")];
  return { escrow: m.contract("Escrow", parameters) };
});
