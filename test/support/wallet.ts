import hre from "hardhat";
import { type Address, parseAbi } from "viem";
import { devAccount } from "../../scripts/embedded/dev-accounts.ts";
import type { UsdcChain } from "./chain/usdc-chain.ts";

export const SMART_WALLET_ABI = parseAbi([
  "constructor(address owner)",
  "function OWNER() view returns (address)",
  "function isValidSignature(bytes32 hash, bytes signature) view returns (bytes4)",
  "function execute(address target, uint256 value, bytes data) returns (bytes)",
  "event Executed(address indexed target, uint256 value, bytes data)",
  "error NotOwner(address got, address wanted)",
]);

/** Deploys `contracts/dev/SmartWallet.sol` for the owner. */
export async function deployWallet(chain: Pick<UsdcChain, "client">, owner: Address): Promise<{ address: Address }> {
  const { bytecode } = await hre.artifacts.readArtifact("SmartWallet");
  const hash = await chain.client.deployContract({
    account: devAccount(1).address,
    chain: null,
    abi: SMART_WALLET_ABI,
    bytecode: bytecode as `0x${string}`,
    args: [owner],
  });
  const { contractAddress } = await chain.client.waitForTransactionReceipt({ hash });
  if (!contractAddress) throw new Error("The smart wallet was not deployed.");
  return { address: contractAddress };
}
