import { type Address, concat, getAddress, type Hex, numberToHex, pad, parseAbi } from "viem";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import { deployContract } from "../chain/contracts.ts";
import type { UsdcChain } from "../chain/usdc-chain.ts";

export const SMART_WALLET_ABI = parseAbi([
  "constructor(address owner)",
  "function OWNER() view returns (address)",
  "function isValidSignature(bytes32 hash, bytes signature) view returns (bytes4)",
  "function execute(address target, uint256 value, bytes data) returns (bytes)",
  "event Executed(address indexed target, uint256 value, bytes data)",
  "error NotOwner(address got, address wanted)",
]);

/** Deploys `contracts/dev/SmartWallet.sol` for the owner. */
export async function deployWallet(
  { client }: Pick<UsdcChain, "client">,
  owner: Address,
): Promise<{ address: Address }> {
  const { address } = await deployContract(client, devAccount(1).address, ["SmartWallet", owner]);
  return { address: getAddress(address) };
}

/**
 * Signs by which a wallet can tell that it is not being simulated. The code leaves one number, which is zero only in a
 * simulation.
 */
export const SIGNS = {
  "transactions have a gas price, simulations none": "0x3a",
  "transactions have an origin, simulations none": "0x32",
  "a flag in its storage is set in between": "0x600054",
} as const satisfies Record<string, Hex>;

/** Code that leaves whether the origin is this account. */
export const originIs = (account: Hex): Hex => concat(["0x73", account, "0x3214"]);

/** Code that leaves whether less gas than this remains. */
export const gasBelow = (gas: number): Hex => concat(["0x63", pad(numberToHex(gas), { size: 4 }), "0x5a10"]);

/** The code of an ERC-1271 wallet that accepts every signature until the sign appears, and then burns all its gas. */
export function burningWallet(sign: Hex): Hex {
  const answer = concat(["0x7f", "0x1626ba7e", `0x${"00".repeat(28)}`, "0x60005260206000f3"]);
  const size = (code: Hex) => (code.length - 2) / 2;
  // sign; PUSH1 burn; JUMPI; answer; burn: JUMPDEST; PUSH1 burn; JUMP
  const burn = numberToHex(size(sign) + 3 + size(answer), { size: 1 });
  return concat([sign, "0x60", burn, "0x57", answer, "0x5b60", burn, "0x56"]);
}

/** The flag is storage slot 0. */
export const FLAG = { index: pad("0x0"), value: pad("0x1") } as const;

/** The code of a wallet that accepts every signature after this number of loops of about 60 gas each. */
export function slowWallet(rounds: number): Hex {
  const answer = concat(["0x7f", "0x1626ba7e", `0x${"00".repeat(28)}`, "0x60005260206000f3"]);
  // PUSH2 rounds; JUMPDEST; hash of zero bytes, dropped; decrement; jump back while rounds remain
  return concat(["0x61", numberToHex(rounds, { size: 2 }), "0x5b6000600020506001900380600357", "0x50", answer]);
}
