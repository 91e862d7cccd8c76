import { buildModule } from "@nomicfoundation/hardhat-ignition/modules";

/** The evaluator of ERC-8183 jobs. Its parameters are the addresses of the external arbiter and the fee recipient. */
export default buildModule("ArbiterEvaluator", (m) => ({
  evaluator: m.contract("ArbiterEvaluator", [m.getParameter("arbiter"), m.getParameter("feeRecipient")]),
}));
