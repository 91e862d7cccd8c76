import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { type Address, concat, createTestClient, custom, encodeAbiParameters, type Hex, publicActions } from "viem";
import { MULTICALL3 } from "../../api/platform/chain/read-at-block.ts";
import { COMMERCE_PAYMENTS } from "../../contracts/commerce-payments.ts";
import { ERC8004 } from "../../contracts/erc8004.ts";
import { CREATEX } from "../../contracts/settlement-batch.ts";
import type { AnvilClient } from "./anvil.ts";
import type { DevNode } from "./usdc.ts";
import { waitUntil } from "./wait-until.ts";

/** Creates a client that can set code on a local chain. */
const devClient = (node: DevNode) =>
  createTestClient({ mode: node.mode, transport: custom(node, { retryCount: 0 }) }).extend(publicActions);

/** Returns the runtime code of a compiled stand-in, with the addresses that its constructor takes. */
async function runtimeCode(node: DevNode, name: string, addresses: readonly Hex[] = []): Promise<Hex> {
  const path = `../../artifacts/contracts/dev/${name}.sol/${name}.json`;
  const { bytecode } = JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8")) as { readonly bytecode: Hex };
  const types = addresses.map(() => ({ type: "address" }) as const);
  // A call of creation code without a target returns the runtime code with the immutables filled in.
  const { data } = await devClient(node).call({ data: concat([bytecode, encodeAbiParameters(types, [...addresses])]) });
  if (data === undefined) throw new Error(`The local chain did not run the creation code of ${name}.`);
  return data;
}

/** The address of the validation registry on local chains. Base does not have a listed one. */
export const LOCAL_VALIDATIONS: Address = "0x8004000000000000000000000000000000000003";

/** Installs our compiled stand-ins for ERC-8004's registries at their addresses on a local chain. */
export async function installAgentRegistries(node: DevNode): Promise<void> {
  const client = devClient(node);
  const { identity, reputation } = ERC8004;
  const [agents, feedback, validations] = await Promise.all([
    runtimeCode(node, "IdentityRegistry"),
    runtimeCode(node, "ReputationRegistry", [identity]),
    runtimeCode(node, "ValidationRegistry", [identity]),
  ]);
  await Promise.all([
    client.setCode({ address: identity, bytecode: agents }),
    client.setCode({ address: reputation, bytecode: feedback }),
    client.setCode({ address: LOCAL_VALIDATIONS, bytecode: validations }),
  ]);
}

const { escrow, collector } = COMMERCE_PAYMENTS;

/** Installs our compiled stand-in for base/commerce-payments at its canonical addresses on a local chain. */
export async function installCommercePayments(node: DevNode): Promise<void> {
  const client = devClient(node);
  const [escrowCode, collectorCode] = await Promise.all([
    runtimeCode(node, "AuthCaptureEscrowStandIn"),
    runtimeCode(node, "Eip3009CollectorStandIn", [escrow, MULTICALL3]),
  ]);
  await Promise.all([
    client.setCode({ address: escrow, bytecode: escrowCode }),
    client.setCode({ address: collector, bytecode: collectorCode }),
  ]);
}

/** The signer of the presigned transaction that deploys CreateX on any chain, with 3,000,000 gas at 100 gwei. */
const SIGNER: Address = "0xeD456e05CaAb11d66C4c797dD6c1D6f9A7F352b5";
const COST_WEI = 3n * 10n ** 17n;
const MINED_WITHIN_MS = 10_000;

/** Deploys CreateX on a local chain that does not have it. */
export async function installCreateX(client: AnvilClient): Promise<void> {
  const isThere = async () => (await client.getCode({ address: CREATEX })) !== undefined;
  if (await isThere()) return;
  await client.setBalance({ address: SIGNER, value: COST_WEI });
  await client.sendRawTransaction({ serializedTransaction: await presignedTransaction() });
  if (!(await waitUntil(isThere, MINED_WITHIN_MS, 10))) throw new Error("CreateX was not deployed on the local chain.");
}

/** Ignition has the transaction, but sends it only on chain 31337 and does not export it. */
async function presignedTransaction(): Promise<Hex> {
  const own = createRequire(import.meta.url);
  const ignition = createRequire(own.resolve("@nomicfoundation/hardhat-ignition"));
  const core = dirname(ignition.resolve("@nomicfoundation/ignition-core/package.json"));
  const path = join(core, "dist/src/internal/execution/strategy/createx-artifact.js");
  const { presignedTx } = (await import(pathToFileURL(path).href)) as { presignedTx: Hex };
  return presignedTx;
}
