import type { HardhatRuntimeEnvironment } from "hardhat/types/hre";
import {
  type Address,
  concat,
  encodeAbiParameters,
  encodeFunctionData,
  getContractAddress,
  getCreate2Address,
  type Hex,
  hexToNumber,
  keccak256,
  type PublicClient,
  pad,
  parseAbi,
  size,
  slice,
  toHex,
} from "viem";
import { requireCommercePayments } from "../api/payments/settle/holds.ts";
import { COMMERCE_PAYMENTS } from "../contracts/commerce-payments.ts";
import { LOG_ANCHOR } from "../contracts/log-anchor.ts";
import { CREATEX, SETTLEMENT_BATCH } from "../contracts/settlement-batch.ts";
import type { DeploySettings } from "./deploy-settings.ts";

/** The expected code on a chain. */
interface ExpectedCode {
  readonly address: Address;
  /** The contract's name in the sources. */
  readonly contract: string;
  /** The values of the immutables, in order of declaration. */
  readonly immutables: readonly Hex[];
}

/** Returns whether the code on the chain is the compiler's output, ignoring the metadata at its end. */
async function isCompilersOutput(
  hre: HardhatRuntimeEnvironment,
  client: PublicClient,
  expected: ExpectedCode,
): Promise<boolean> {
  const code = await client.getCode({ address: expected.address });
  return code !== undefined && withoutMetadata(code) === withoutMetadata(await fillIn(hre, expected));
}

/** Returns the runtime code with the immutables filled in. */
async function fillIn(hre: HardhatRuntimeEnvironment, { contract, immutables }: ExpectedCode): Promise<Hex> {
  const { deployedBytecode, immutableReferences = {} } = await hre.artifacts.readArtifact(contract);
  const inOrder = Object.keys(immutableReferences).toSorted((a, b) => Number(a) - Number(b));
  return inOrder.reduce<Hex>((code, id, index) => {
    const places = immutableReferences[id] ?? [];
    return places.reduce((text, place) => fill(text, place.start, immutables[index] ?? "0x"), code);
  }, deployedBytecode as Hex);
}

/** Removes the metadata that solc appends, a hash of the sources including comments. Its last two bytes are its length. */
const withoutMetadata = (code: Hex): Hex => slice(code, 0, size(code) - hexToNumber(slice(code, -2)) - 2);

function fill(code: Hex, start: number, value: Hex): Hex {
  const from = 2 + start * 2;
  return concat([code.slice(0, from) as Hex, pad(value).toLowerCase() as Hex, `0x${code.slice(from + 64)}`]);
}

const CREATEX_ABI = parseAbi(["function deployCreate2(bytes32 salt, bytes initCode) payable returns (address)"]);

type Roles = DeploySettings["roles"];

/** One contract of a deployment. CreateX derives its address from the salt, the code, and the constructor's arguments. */
interface Contract {
  /** Its name in the sources. */
  readonly contract: string;
  readonly salt: Hex;
  /** The constructor's arguments. They are also the immutables in its code, in order of declaration. */
  readonly argumentsOf: (roles: Roles) => readonly (Address | boolean)[];
  /** The other immutables in its code, which depend on its address. */
  readonly immutablesOf?: (address: Address) => readonly Hex[];
  /** @throws Error if the chain lacks what the contract needs */
  readonly requirement?: (client: PublicClient) => Promise<unknown>;
}

/** Evaluators are clones of the first contract that the factory creates. */
const FIRST_NONCE = 1n;

const { escrow, collector, feeIsAmount } = COMMERCE_PAYMENTS;

/** The contracts, by the names that `npm run deploy` prints. */
export const CONTRACTS = {
  escrow: {
    contract: "Escrow",
    salt: toHex("Escrow 1", { size: 32 }),
    argumentsOf: ({ usdc, arbiter, feeRecipient }) => [usdc, arbiter, feeRecipient],
  },
  operator: {
    contract: "ArbiterOperator",
    salt: toHex("ArbiterOperator 1", { size: 32 }),
    argumentsOf: ({ usdc, arbiter, feeRecipient }) => [escrow, collector, usdc, arbiter, feeRecipient, feeIsAmount],
    requirement: requireCommercePayments,
  },
  evaluator: {
    contract: "ArbiterEvaluator",
    salt: toHex("ArbiterEvaluator 1", { size: 32 }),
    argumentsOf: ({ arbiter, feeRecipient }) => [arbiter, feeRecipient],
    immutablesOf: (address) => [getContractAddress({ from: address, nonce: FIRST_NONCE })],
  },
  batch: { contract: "SettlementBatch", salt: SETTLEMENT_BATCH.salt, argumentsOf: () => [] },
  anchor: { contract: "LogAnchor", salt: LOG_ANCHOR.salt, argumentsOf: () => [] },
} as const satisfies Readonly<Record<string, Contract>>;

export type ContractName = keyof typeof CONTRACTS;

/** A contract of this checkout with its roles, and the inputs that an explorer needs to verify its code. */
export interface Planned {
  readonly name: ContractName;
  readonly address: Address;
  readonly isDeployed: boolean;
  /** The reason that it cannot be deployed, or null. */
  readonly obstacle: string | null;
  /** The calldata for CreateX that deploys it. */
  readonly data: Hex;
  readonly constructorArguments: Hex;
  /** A file whose `input` is the standard JSON input that the code is compiled from. */
  readonly compilerFile: string;
}

/**
 * Returns the contracts' addresses, and which contracts are deployed. Everything follows from the roles and the code, so it
 * needs no record of an earlier deployment, and any account may have sent it.
 * @throws Error if the chain has no CreateX, or a contract's address has other code
 */
export async function planDeployment(
  hre: HardhatRuntimeEnvironment,
  client: PublicClient,
  roles: Roles,
): Promise<readonly Planned[]> {
  if ((await client.getCode({ address: CREATEX })) === undefined)
    throw new Error(
      `The chain has no CreateX at ${CREATEX}, which deploys the contracts. Base and Base Sepolia have it.`,
    );
  const planned: Planned[] = [];
  for (const name of Object.keys(CONTRACTS) as ContractName[]) planned.push(await plan(hre, client, { name, roles }));
  return planned;
}

async function plan(
  hre: HardhatRuntimeEnvironment,
  client: PublicClient,
  { name, roles }: { readonly name: ContractName; readonly roles: Roles },
): Promise<Planned> {
  const { contract, salt, argumentsOf, immutablesOf, requirement }: Contract = CONTRACTS[name];
  const values = argumentsOf(roles);
  const types = values.map((value) => ({ type: typeof value === "boolean" ? "bool" : "address" }));
  const constructorArguments = encodeAbiParameters(types, values);
  const { bytecode } = await hre.artifacts.readArtifact(contract);
  const initCode = concat([bytecode as Hex, constructorArguments]);
  const address = getCreate2Address({ from: CREATEX, salt: keccak256(salt), bytecode: initCode });
  const immutables = [
    ...values.map((value) => (typeof value === "boolean" ? toHex(value) : value)),
    ...(immutablesOf?.(address) ?? []),
  ];
  const isDeployed = (await client.getCode({ address })) !== undefined;
  if (isDeployed && !(await isCompilersOutput(hre, client, { address, contract, immutables })))
    throw new Error(`The code at ${address} is not this project's ${name} with these roles.`);
  const obstacle = isDeployed || requirement === undefined ? null : await problemOf(requirement(client));
  return {
    ...{ name, address, isDeployed, obstacle, constructorArguments },
    data: encodeFunctionData({ abi: CREATEX_ABI, functionName: "deployCreate2", args: [salt, initCode] }),
    compilerFile: await compilerFileOf(hre, contract),
  };
}

const problemOf = (requirement: Promise<unknown>): Promise<string | null> =>
  requirement.then(
    () => null,
    (error: Error) => error.message,
  );

async function compilerFileOf({ artifacts }: HardhatRuntimeEnvironment, contract: string): Promise<string> {
  const id = await artifacts.getBuildInfoId(contract);
  const path = id === undefined ? undefined : await artifacts.getBuildInfoPath(id);
  if (path === undefined)
    throw new Error(`The compiler input of ${contract} is missing: delete artifacts/ and cache/, and run this again.`);
  return path;
}
