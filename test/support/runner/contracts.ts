import hre from "hardhat";
import { buildContractsFirst } from "../../../scripts/embedded/build-contracts.ts";

/** Vitest's global setup for the contract tests: compiles once, so that no two of them do at the same time. */
export default (): Promise<void> => buildContractsFirst(hre, { noTests: false });
