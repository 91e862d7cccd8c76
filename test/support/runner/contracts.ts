import hre from "hardhat";
import { buildContractsFirst } from "../../../scripts/embedded/build-contracts.ts";

/** Vitest's global setup for the contract tests. It compiles once, so that no two tests compile simultaneously. */
export default (): Promise<void> => buildContractsFirst(hre, { noTests: false });
