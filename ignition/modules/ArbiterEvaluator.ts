import { buildModule } from "@nomicfoundation/hardhat-ignition/modules";

/** The evaluator of ERC-8183 jobs; its parameters are the external arbiter's address and the fee recipient's. */
export default buildModule("ArbiterEvaluator", (m) => ({
  evaluator: m.contract("ArbiterEvaluator", [m.getParameter("arbiter"), m.getParameter("feeRecipient")]),
}));
