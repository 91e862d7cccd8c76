import { buildModule } from "@nomicfoundation/hardhat-ignition/modules";

/** The settlement batch. Its strategy is `create2`, with the salt of `contracts/settlement-batch.ts`. */
export default buildModule("SettlementBatch", (m) => ({ batch: m.contract("SettlementBatch") }));
