import { buildModule } from "@nomicfoundation/hardhat-ignition/modules";

/** The escrow; whoever deploys it gives USDC's address on the chain, the arbiter's and the fee recipient's. */
export default buildModule("Escrow", (m) => {
  const parameters = [m.getParameter("usdc"), m.getParameter("arbiter"), m.getParameter("feeRecipient")];
  return { escrow: m.contract("Escrow", parameters) };
});
