import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Hex, isAddressEqual, toFunctionSelector } from "viem";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  type DeploymentTarget,
  deployedEscrow,
  hasEarlierVersion,
  isJournalTrue,
  journalOf,
} from "../../../scripts/embedded/deployments.ts";
import { startTestChain, type TestChain } from "../../support/chain/chain.ts";
import { deployEscrow, FEE_RECIPIENT, type TestEscrow } from "../../support/escrow/contract.ts";

let chain: TestChain;
let escrow: TestEscrow;
let target: DeploymentTarget;
const folder = mkdtempSync(join(tmpdir(), "deployments-"));

beforeAll(async () => {
  chain = await startTestChain();
  escrow = await deployEscrow(chain);
  target = { network: chain.network, hardhatName: "localBase", rpcUrl: chain.rpcUrl };
  mkdirSync(journalOf(folder, target), { recursive: true });
  const file = join(journalOf(folder, target), "deployed_addresses.json");
  writeFileSync(file, JSON.stringify({ "Escrow#Escrow": escrow.address }));
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await chain.stop();
});

const roles = () => ({ arbiter: escrow.arbiter, feeRecipient: FEE_RECIPIENT });
const found = async () => {
  const address = await deployedEscrow(folder, target, roles());
  return address !== null && isAddressEqual(address, escrow.address);
};

test("an escrow of an earlier version, which has no minimum, is none: it is deployed again", async () => {
  expect([await found(), await hasEarlierVersion(folder, target)]).toEqual([true, false]);
  const code = (await chain.client.getCode({ address: escrow.address })) ?? "0x";
  const minimum = toFunctionSelector("MINIMUM()").slice(2);
  expect(code.split(minimum)).toHaveLength(2);
  await chain.client.setCode({ address: escrow.address, bytecode: code.replace(minimum, "ffffffff") as Hex });
  expect([await found(), await hasEarlierVersion(folder, target)]).toEqual([false, true]);
  expect(await isJournalTrue(folder, target, roles())).toBe(false);
});
