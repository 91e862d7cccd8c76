import { buildModule } from "@nomicfoundation/hardhat-ignition/modules";

/** The anchor of logs. Its strategy is `create2`, with the salt of `contracts/log-anchor.ts`. */
export default buildModule("LogAnchor", (m) => ({ anchor: m.contract("LogAnchor") }));
