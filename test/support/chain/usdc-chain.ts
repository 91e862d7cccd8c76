import { readFileSync } from "node:fs";
import hre from "hardhat";
import {
  type Address,
  type ContractFunctionArgs,
  getAddress,
  type Hex,
  isAddressEqual,
  parseAbi,
  publicActions,
  walletActions,
} from "viem";
import { NETWORKS, type NetworkFacts } from "../../../api/platform/networks.ts";
import { COMMERCE_PAYMENTS } from "../../../contracts/commerce-payments.ts";
import { installCommercePayments } from "../../../scripts/embedded/install-contracts.ts";
import { installUsdc, USDC_ABI } from "../../../scripts/embedded/usdc.ts";
import { putBehindProxy } from "./contracts.ts";

/** An environment for the same tests: Hardhat's own chain with Circle's bytecode, or a fork of the real Base. */
export interface UsdcEnvironment {
  readonly title: string;
  readonly hardhatNetwork: "simulatedBase" | "simulatedBaseSepolia" | "forkedBase";
  readonly network: NetworkFacts;
  /** The reason why it cannot run here, or null. */
  readonly skipped: string | null;
}

export const LOCAL_BASE: UsdcEnvironment = {
  title: "local Base",
  hardhatNetwork: "simulatedBase",
  network: NETWORKS["eip155:8453"],
  skipped: null,
};

export const USDC_ENVIRONMENTS: readonly UsdcEnvironment[] = [
  LOCAL_BASE,
  {
    title: "local Base Sepolia",
    hardhatNetwork: "simulatedBaseSepolia",
    network: NETWORKS["eip155:84532"],
    skipped: null,
  },
  {
    title: "a fork of Base",
    hardhatNetwork: "forkedBase",
    network: NETWORKS["eip155:8453"],
    skipped: process.env.BASE_RPC_URL === undefined ? "BASE_RPC_URL is not set: no Base to fork" : null,
  },
];

const ROLES = parseAbi([
  "function masterMinter() view returns (address)",
  "function pauser() view returns (address)",
  "function blacklister() view returns (address)",
]);

type Change = "configureMinter" | "mint" | "pause" | "unpause" | "blacklist" | "unBlacklist";

export type UsdcChain = Awaited<ReturnType<typeof connectUsdc>>;

/** A chain with USDC, administered by the holders of its roles. */
export async function connectUsdc({ hardhatNetwork, network }: UsdcEnvironment) {
  const connection = await hre.network.create(hardhatNetwork);
  const client = (await connection.viem.getTestClient()).extend(publicActions).extend(walletActions);
  if (hardhatNetwork !== "forkedBase") await installUsdc(client, network);
  const address = network.usdc.address;
  const change = async <F extends Change>(
    by: Address,
    functionName: F,
    args: ContractFunctionArgs<typeof USDC_ABI, "nonpayable", F>,
  ) => {
    await client.impersonateAccount({ address: by });
    await client.setBalance({ address: by, value: 10n ** 18n });
    // The union of functions is too complex for viem's types.
    const call = { account: by, address, abi: USDC_ABI, functionName, args, gas: 300_000n } as never;
    return client.waitForTransactionReceipt({ hash: (await client.writeContract(call)) as Hex });
  };
  const role = (functionName: "masterMinter" | "pauser" | "blacklister") =>
    client.readContract({ address, abi: ROLES, functionName });
  return {
    client,
    network,
    connection,
    fund: async (to: Address, value: bigint) => {
      const minter = await role("masterMinter");
      await change(minter, "configureMinter", [minter, value]);
      await change(minter, "mint", [to, value]);
    },
    pause: async () => change(await role("pauser"), "pause", []),
    unpause: async () => change(await role("pauser"), "unpause", []),
    blacklist: async (account: Address) => change(await role("blacklister"), "blacklist", [account]),
    unblacklist: async (account: Address) => change(await role("blacklister"), "unBlacklist", [account]),
    balanceOf: (account: Address) =>
      client.readContract({ address, abi: USDC_ABI, functionName: "balanceOf", args: [account] }),
  };
}

const { CANONICAL_CODE } = process.env;
const CANONICAL = "local Base with the real code of base/commerce-payments";

/** The environments of the operator's tests: our stand-in, the real code, and a fork of Base. */
export const COMMERCE_ENVIRONMENTS: readonly UsdcEnvironment[] = [
  ...USDC_ENVIRONMENTS,
  {
    title: CANONICAL,
    hardhatNetwork: "simulatedBase",
    network: NETWORKS["eip155:8453"],
    skipped: CANONICAL_CODE === undefined ? "CANONICAL_CODE is not set: no file with that code" : null,
  },
];

/** A chain with USDC and base/commerce-payments. */
export async function connectCommerce(environment: UsdcEnvironment): Promise<UsdcChain> {
  const chain = await connectUsdc(environment);
  if (environment.hardhatNetwork === "forkedBase") return chain;
  await installCommercePayments(chain.client);
  if (environment.title === CANONICAL && CANONICAL_CODE !== undefined) {
    for (const { address, bytecode } of readCode(CANONICAL_CODE)) await chain.client.setCode({ address, bytecode });
  }
  return chain;
}

/** Measures on a new local Base with Circle's USDC behind Circle's proxy, as on Base. */
export async function onLocalBase<T>(
  measure: (chain: UsdcChain) => Promise<T>,
  connecting: Promise<UsdcChain> = connectUsdc(LOCAL_BASE),
): Promise<T> {
  const chain = await connecting;
  try {
    await putBehindProxy(chain);
    return await measure(chain);
  } finally {
    await chain.connection.close();
  }
}

/**
 * Reads a file that maps addresses to runtime code. @throws Error if it lacks one of the two contracts that the
 * operator calls, because the stand-in would be tested instead
 */
function readCode(path: string): readonly { readonly address: Address; readonly bytecode: Hex }[] {
  const codes = Object.entries(JSON.parse(readFileSync(path, "utf8")) as Readonly<Record<Address, Hex>>);
  const found = codes.map(([address, bytecode]) => ({ address: getAddress(address), bytecode }));
  for (const wanted of [COMMERCE_PAYMENTS.escrow, COMMERCE_PAYMENTS.collector])
    if ((found.find(({ address }) => isAddressEqual(address, wanted))?.bytecode ?? "0x") === "0x")
      throw new Error(`${path} has no code of ${wanted}, which CANONICAL_CODE must provide.`);
  return found;
}
