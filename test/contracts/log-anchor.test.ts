import hre from "hardhat";
import {
  BaseError,
  ContractFunctionRevertedError,
  getCreate2Address,
  type Hex,
  keccak256,
  parseEventLogs,
  publicActions,
  sha256,
  toHex,
  walletActions,
  zeroHash,
} from "viem";
import { afterAll, describe, expect, test } from "vitest";
import snapshot from "../../contracts/gas-snapshot.json" with { type: "json" };
import { LOG_ANCHOR, logAnchorAbi } from "../../contracts/log-anchor.ts";
import { CREATEX } from "../../contracts/settlement-batch.ts";
import { devAccount } from "../../scripts/embedded/dev-accounts.ts";
import { artifactOf, deployContract } from "../support/chain/contracts.ts";
import { ANCHORS, measureAnchors } from "./gas/anchors.ts";

const { bytecode, deployedBytecode } = artifactOf("LogAnchor");
const [BY, OTHER] = [devAccount(1).address, devAccount(2).address];
const ORIGIN = sha256(toHex("trust.example/log"));
const ROOT = `0x${"a7".repeat(32)}` as const;

describe("the published contract", () => {
  test("contracts/log-anchor.ts has its code hash and its address", () => {
    expect(keccak256(deployedBytecode)).toBe(LOG_ANCHOR.codeHash);
    const salt = keccak256(LOG_ANCHOR.salt);
    expect(getCreate2Address({ from: CREATEX, salt, bytecode })).toBe(LOG_ANCHOR.address);
  });
});

describe("anchors", async () => {
  const connection = await hre.network.create("simulatedBase");
  afterAll(() => connection.close());
  const client = (await connection.viem.getTestClient()).extend(publicActions).extend(walletActions);
  const { address } = await deployContract(client, BY, ["LogAnchor"]);
  const contract = { address, abi: logAnchorAbi } as const;
  const anchor = async (account: Hex, size: bigint, root: Hex = ROOT) => {
    const { request } = await client.simulateContract({
      ...contract,
      account,
      functionName: "anchor",
      args: [ORIGIN, size, root],
    });
    return client.waitForTransactionReceipt({ hash: await client.writeContract(request) });
  };
  const latest = (by: Hex) => client.readContract({ ...contract, functionName: "latest", args: [by, ORIGIN] });
  const notLonger = (anchored: bigint) => (error: unknown) => {
    const revert = (error as BaseError).walk((cause) => cause instanceof ContractFunctionRevertedError);
    expect((revert as ContractFunctionRevertedError).data).toMatchObject({ errorName: "NotLonger", args: [anchored] });
  };
  const refused = async (size: bigint, anchored: bigint) => {
    const outcome = await anchor(BY, size).catch((error: unknown) => error);
    expect(outcome).toBeInstanceOf(BaseError);
    notLonger(anchored)(outcome);
  };

  test("The newest anchor is stored with the block of its event", async () => {
    expect(await latest(BY)).toEqual([0n, 0n, zeroHash]);
    const { logs, blockNumber } = await anchor(BY, 7n);
    expect(await latest(BY)).toEqual([7n, blockNumber, ROOT]);
    const [event] = parseEventLogs({ abi: logAnchorAbi, logs });
    expect(event?.args).toEqual({ by: BY, origin: ORIGIN, size: 7n, root: ROOT });
  });

  test("A log that is empty, has not grown, or was cut is refused", async () => {
    await refused(7n, 7n);
    await refused(6n, 7n);
    await refused(0n, 7n);
    await anchor(BY, 8n);
    expect((await latest(BY))[0]).toBe(8n);
  });

  test("An anchor belongs to its sender, and no other sender can move or block it", async () => {
    await anchor(OTHER, 2n ** 64n - 1n, zeroHash);
    expect((await latest(BY))[0]).toBe(8n);
    await anchor(BY, 9n);
  });
});

test("An anchor is within its gas limit", async () => {
  const gas = await measureAnchors();
  for (const use of Object.keys(ANCHORS) as (keyof typeof ANCHORS)[]) {
    expect(gas[use]).toBeLessThanOrEqual(ANCHORS[use]);
    expect(Math.abs(gas[use] - snapshot.anchors[use])).toBeLessThanOrEqual(snapshot.anchors[use] / 100);
  }
});
