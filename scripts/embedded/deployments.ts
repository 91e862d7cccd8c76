import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  type Address,
  BaseError,
  ContractFunctionRevertedError,
  ContractFunctionZeroDataError,
  isAddressEqual,
  keccak256,
} from "viem";
import { NETWORKS, type NetworkFacts } from "../../api/kernel/networks.ts";
import { escrowAbi, operatorAbi } from "../../contracts/abi.ts";
import { COMMERCE_PAYMENTS } from "../../contracts/commerce-payments.ts";
import { LOG_ANCHOR } from "../../contracts/log-anchor.ts";
import { SETTLEMENT_BATCH } from "../../contracts/settlement-batch.ts";
import { LEAST_AMOUNT } from "../../packages/escrow/src/terms.ts";
import { anvilClient } from "./anvil.ts";

/** One local chain as named in Hardhat's configuration. */
export interface DeploymentTarget {
  readonly network: NetworkFacts;
  readonly hardhatName: "localBase" | "localBaseSepolia";
  readonly rpcUrl: string;
}

/** The two local chains, by the ports of their RPC servers. */
export const deploymentTargets = (ports: {
  base: number | string;
  baseSepolia: number | string;
}): readonly [DeploymentTarget, DeploymentTarget] => [
  { network: NETWORKS["eip155:8453"], hardhatName: "localBase", rpcUrl: `http://127.0.0.1:${ports.base}` },
  {
    network: NETWORKS["eip155:84532"],
    hardhatName: "localBaseSepolia",
    rpcUrl: `http://127.0.0.1:${ports.baseSepolia}`,
  },
];

/** Ignition's journal of one chain. */
export const journalOf = (folder: string, target: DeploymentTarget): string =>
  join(folder, "deployments", `chain-${target.network.chainId}`);

/** The arbiter of the local escrows and operators, and the recipient of their fees. */
export interface EscrowRoles {
  readonly arbiter: Address;
  readonly feeRecipient: Address;
}

/** The smart wallet's address on the chain, or null if it is not deployed. */
export const deployedWallet = (folder: string, target: DeploymentTarget): Promise<Address | null> =>
  deployed(folder, target, "SmartWallet#SmartWallet");

/** The escrow's address on the chain, or null if it is not deployed with these roles, or is of an earlier version. */
export async function deployedEscrow(
  folder: string,
  target: DeploymentTarget,
  roles: EscrowRoles,
): Promise<Address | null> {
  const address = await deployed(folder, target, "Escrow#Escrow");
  return address !== null && (await isCurrent(address, target)) && (await hasRoles(address, target, roles))
    ? address
    : null;
}

/**
 * The operator's address on the chain, or null if it is not deployed over base/commerce-payments with these roles, or is
 * of an earlier version.
 */
export async function deployedOperator(
  folder: string,
  target: DeploymentTarget,
  roles: EscrowRoles,
): Promise<Address | null> {
  const address = await deployed(folder, target, "ArbiterOperator#ArbiterOperator");
  if (address === null || !(await isCurrent(address, target)) || !(await hasRoles(address, target, roles))) return null;
  const read = (functionName: "ESCROW" | "COLLECTOR") =>
    anvilClient(target.rpcUrl, target.network).readContract({ address, abi: operatorAbi, functionName });
  const [escrow, collector] = await Promise.all([read("ESCROW"), read("COLLECTOR")]);
  const isSame =
    isAddressEqual(escrow, COMMERCE_PAYMENTS.escrow) && isAddressEqual(collector, COMMERCE_PAYMENTS.collector);
  return isSame ? address : null;
}

/** The evaluator's address on the chain, or null if it is not deployed with these roles. */
export async function deployedEvaluator(
  folder: string,
  target: DeploymentTarget,
  roles: EscrowRoles,
): Promise<Address | null> {
  const address = await deployed(folder, target, "ArbiterEvaluator#ArbiterEvaluator");
  return address !== null && (await hasRoles(address, target, roles)) ? address : null;
}

/** The escrow, the operator and the evaluator have the same getters. */
async function hasRoles(address: Address, target: DeploymentTarget, roles: EscrowRoles): Promise<boolean> {
  const read = (functionName: "ARBITER" | "FEE_RECIPIENT") =>
    anvilClient(target.rpcUrl, target.network).readContract({ address, abi: escrowAbi, functionName });
  const [arbiter, feeRecipient] = await Promise.all([read("ARBITER"), read("FEE_RECIPIENT")]);
  return isAddressEqual(arbiter, roles.arbiter) && isAddressEqual(feeRecipient, roles.feeRecipient);
}

/** Whether an escrow or an operator that an earlier version of this project deployed is on the chain. */
export async function hasEarlierVersion(folder: string, target: DeploymentTarget): Promise<boolean> {
  const found = await Promise.all(
    ["Escrow#Escrow", "ArbiterOperator#ArbiterOperator"].map((name) => deployed(folder, target, name)),
  );
  const addresses = found.filter((address) => address !== null);
  return (await Promise.all(addresses.map((address) => isCurrent(address, target)))).includes(false);
}

/** Earlier versions of the escrow and the operator hold any amount: they have no `MINIMUM`. */
async function isCurrent(address: Address, target: DeploymentTarget): Promise<boolean> {
  const call = { address, abi: escrowAbi, functionName: "MINIMUM" } as const;
  try {
    return (await anvilClient(target.rpcUrl, target.network).readContract(call)) === LEAST_AMOUNT;
  } catch (cause) {
    const isAnswer = (error: unknown) =>
      error instanceof ContractFunctionRevertedError || error instanceof ContractFunctionZeroDataError;
    if (cause instanceof BaseError && cause.walk(isAnswer) !== null) return false;
    throw cause;
  }
}

/** Whether base/commerce-payments, or what stands in for it, is on the chain. */
export async function hasCommercePayments(target: DeploymentTarget): Promise<boolean> {
  const client = anvilClient(target.rpcUrl, target.network);
  const { escrow, collector } = COMMERCE_PAYMENTS;
  const codes = await Promise.all([escrow, collector].map((address) => client.getCode({ address })));
  return !codes.includes(undefined);
}

/** Whether a contract that is at the same address on every chain is on this one. */
export async function hasShared(
  target: DeploymentTarget,
  { address, codeHash }: typeof SETTLEMENT_BATCH,
): Promise<boolean> {
  const code = await anvilClient(target.rpcUrl, target.network).getCode({ address });
  return code !== undefined && keccak256(code) === codeHash;
}

/** Whether the wallet, the contracts with these roles, and what they need, are all on the chain. */
export async function isDeployed(folder: string, target: DeploymentTarget, roles: EscrowRoles): Promise<boolean> {
  const [wallet, escrow, operator, evaluator, ...others] = await Promise.all([
    deployedWallet(folder, target),
    deployedEscrow(folder, target, roles),
    deployedOperator(folder, target, roles),
    deployedEvaluator(folder, target, roles),
    hasCommercePayments(target),
    hasShared(target, SETTLEMENT_BATCH),
    hasShared(target, LOG_ANCHOR),
  ]);
  return ![wallet, escrow, operator, evaluator].includes(null) && !others.includes(false);
}

/** Whether every contract in the journal exists; those of a discarded chain do not. */
export async function isJournalTrue(folder: string, target: DeploymentTarget, roles: EscrowRoles): Promise<boolean> {
  const names = Object.keys(recorded(folder, target));
  const hasEvaluator = names.includes("ArbiterEvaluator#ArbiterEvaluator");
  const evaluator = hasEvaluator ? await deployedEvaluator(folder, target, roles) : undefined;
  const escrow = names.includes("Escrow#Escrow") ? await deployedEscrow(folder, target, roles) : undefined;
  const hasOperator = names.includes("ArbiterOperator#ArbiterOperator");
  const operator = hasOperator ? await deployedOperator(folder, target, roles) : undefined;
  const wallet = names.includes("SmartWallet#SmartWallet") ? await deployedWallet(folder, target) : undefined;
  const lacks = async (name: string, place: typeof SETTLEMENT_BATCH) =>
    names.includes(name) && !(await hasShared(target, place));
  const lacksShared =
    (await lacks("SettlementBatch#SettlementBatch", SETTLEMENT_BATCH)) ||
    (await lacks("LogAnchor#LogAnchor", LOG_ANCHOR));
  return names.length > 0 && ![wallet, escrow, operator, evaluator].includes(null) && !lacksShared;
}

async function deployed(folder: string, target: DeploymentTarget, name: string): Promise<Address | null> {
  const address = recorded(folder, target)[name];
  if (address === undefined) return null;
  const code = await anvilClient(target.rpcUrl, target.network).getCode({ address });
  return code === undefined ? null : address;
}

/** Also empty for a file that a kill left half-written: then the contracts are deployed again. */
function recorded(folder: string, target: DeploymentTarget): Readonly<Record<string, Address>> {
  try {
    return JSON.parse(readFileSync(join(journalOf(folder, target), "deployed_addresses.json"), "utf8"));
  } catch {
    return {};
  }
}
