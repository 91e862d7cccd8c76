import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Address, Hex } from "viem";
import { CREATEX } from "../../contracts/settlement-batch.ts";
import type { AnvilClient } from "./anvil.ts";
import { waitUntil } from "./wait-until.ts";

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
