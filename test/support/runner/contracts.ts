import hre from "hardhat";
import { buildContracts } from "../../../scripts/embedded/build-contracts.ts";

/** Vitest's global setup for the contract tests: compiles once, before several files try to at the same time. */
export default (): Promise<void> => buildContracts(hre, { noTests: false });
