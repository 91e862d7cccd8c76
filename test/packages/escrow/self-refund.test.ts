import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { decodePaymentResponseHeader } from "@x402/core/http";
import { getAddress, type Hex, zeroHash } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { escrowAbi } from "../../../contracts/abi.ts";
import { findHold, selfRefund } from "../../../packages/escrow/src/index.ts";
import { refundCommand } from "../../../packages/escrow/src/refund-command.ts";
import type { RefundTarget } from "../../../packages/escrow/src/self-refund.ts";
import { devAccount, privateKeyOf } from "../../../scripts/embedded/dev-accounts.ts";
import { startTestChain, type TestChain } from "../../support/chain/chain.ts";
import { deployEscrow, type TestEscrow } from "../../support/escrow/contract.ts";
import { buyFrom, haiku, newBuyer, openShop, statusOf } from "../../support/escrow/sale.ts";
import { ARBITER_KEY, bareEnvironment } from "../../support/service/environment.ts";

const CLI = fileURLToPath(new URL("../../../packages/escrow/src/cli.ts", import.meta.url));
/** Someone with gas who is neither the buyer nor the merchant. */
const anybody = devAccount(7);
const call = promisify(execFile);
/** Nobody arbitrates here, and every test has a chain of its own: moving its clock on cannot be undone. */
let scene: { readonly chain: TestChain; readonly escrow: TestEscrow };
beforeEach(async () => {
  const chain = await startTestChain();
  scene = { chain, escrow: await deployEscrow(chain) };
});
afterEach(() => scene?.chain.stop());

/** A hold whose delivery no arbiter hears of. */
async function held() {
  const payer = await newBuyer(scene.chain);
  const options = {
    escrow: scene.escrow.address,
    forward: () => Promise.reject(new Error("Nobody arbitrates.")),
  };
  const shop = await openShop({ ...scene, arbiter: { url: "http://127.0.0.1:9" } }, haiku, options);
  const { id, response } = await buyFrom(shop, payer);
  const { transaction } = decodePaymentResponseHeader(response.headers.get("payment-response") ?? "");
  const found = await findHold(scene.chain.client, { id });
  if (found === null) throw new Error("The hold is not found.");
  expect(found).toMatchObject({ id, transaction, escrow: getAddress(scene.escrow.address) });
  const { timestamp } = await scene.chain.client.getBlock({ blockNumber: await blockOf(found.transaction) });
  /** Mines a block this many seconds after the hold. */
  const after = async (seconds: number) => {
    await scene.chain.client.setNextBlockTimestamp({ timestamp: timestamp + BigInt(seconds) });
    await scene.chain.mine();
  };
  return { id, payer: payer.address, transaction: found.transaction, info: found.info, after };
}

const blockOf = async (hash: Hex): Promise<bigint> =>
  (await scene.chain.client.getTransactionReceipt({ hash })).blockNumber;

const refund = (target: RefundTarget) => selfRefund({ ...target, account: anybody, rpcUrl: scene.chain.rpcUrl });

test("at 1799 s it is refused with the time; at 1800 s anybody refunds it to the payer, by its terms", async () => {
  const { id, payer, info, after } = await held();
  const target = { escrow: scene.escrow.address, paymentInfo: info };
  await after(1799);
  const early = refund(target);
  await expect(early).rejects.toMatchObject({ code: "too_early", message: expect.stringMatching(/in 0 min 1 s\.$/) });
  expect(await statusOf(scene, id)).toBe("held");
  await after(1800);
  expect(await refund(target)).toMatchObject({ id, payer, amount: 100_000n, isPaid: true });
  expect(await statusOf(scene, id)).toBe("refunded");
  expect(await scene.chain.usdcBalance(payer)).toBe(1_000_000n);
  await expect(refund(target)).rejects.toMatchObject({ code: "already_refunded" });
});

test("by its id, with or without the contract; what USDC refuses is owed instead", async () => {
  const [first, second] = [await held(), await held()];
  await second.after(1800);
  await scene.chain.blacklist(first.payer);
  expect(await refund({ paymentId: first.id, escrow: scene.escrow.address })).toMatchObject({ isPaid: false });
  expect(await refund({ paymentId: second.id })).toMatchObject({ id: second.id, payer: second.payer, isPaid: true });
  expect(await statusOf(scene, first.id)).toBe("refunded");
});

test("what is not held, was released, or holds nothing is refused by name", async () => {
  const { id, info, transaction } = await held();
  const nothing: Hex = `0x${"ab".repeat(32)}`;
  await expect(refund({ paymentId: nothing })).rejects.toMatchObject({ code: "not_found" });
  await expect(refund({ paymentId: id, escrow: anybody.address })).rejects.toMatchObject({ code: "not_found" });
  const unknown = { escrow: scene.escrow.address, paymentInfo: { ...info, salt: 1n } };
  await expect(refund(unknown)).rejects.toMatchObject({ code: "not_found" });
  const released = await scene.chain.client.writeContract({
    account: privateKeyToAccount(ARBITER_KEY),
    address: scene.escrow.address,
    abi: escrowAbi,
    functionName: "release",
    args: [info, zeroHash, "0x"],
  });
  await scene.chain.client.waitForTransactionReceipt({ hash: released });
  await expect(refund({ transaction: released })).rejects.toMatchObject({ code: "not_found" });
  await expect(refund({ transaction })).rejects.toMatchObject({ code: "already_released" });
});

const command = (args: readonly string[], env: Record<string, string> = {}) =>
  call(process.execPath, [CLI, ...args], { env: { ...bareEnvironment(), ...env } }).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    ({ code, stdout, stderr }: { code: number; stdout: string; stderr: string }) => ({ code, stdout, stderr }),
  );

test("the command refuses wrong use and says what is expected", async () => {
  const id = `0x${"ab".repeat(32)}`;
  const rpc = ["--rpc", scene.chain.rpcUrl];
  vi.stubEnv("PRIVATE_KEY", undefined);
  await expect(refundCommand([id, ...rpc])).rejects.toThrow(/^PRIVATE_KEY is not set/);
  vi.stubEnv("PRIVATE_KEY", privateKeyOf(anybody));
  await expect(refundCommand(rpc)).rejects.toThrow(/^Name one payment id/);
  await expect(refundCommand(["0x12", ...rpc])).rejects.toThrow(/^Name one payment id/);
  await expect(refundCommand([id, id, ...rpc])).rejects.toThrow(/^Name one payment id/);
  await expect(refundCommand([id])).rejects.toThrow(/^--rpc <URL> is missing/);
  await expect(refundCommand([id, ...rpc, "--escrow", "0x1"])).rejects.toThrow(/--escrow/);
  await expect(refundCommand([id, ...rpc, "--fast"])).rejects.toThrow(/--fast/);
  vi.unstubAllEnvs();
});

test("the command: 2 for wrong use, 1 too early, 0 when it refunded, by the hold's transaction or by its id", async () => {
  const { id, payer, transaction, after } = await held();
  const args = ["--rpc", scene.chain.rpcUrl, "--key-env", "SENDER"];
  const env = { SENDER: privateKeyOf(anybody) };
  expect(await command([])).toMatchObject({ code: 2, stderr: expect.stringMatching(/refund <payment id/) });
  await after(600);
  const early = await command(["refund", transaction, ...args], env);
  expect(early).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/cannot be refunded until 2.*Z,.*in 20 min 0 s/),
  });
  await after(1800);
  const done = await command(["refund", transaction, ...args], env);
  expect(done.stdout).toContain(`Payment ${id}: 0.10 USDC was refunded to ${payer} in transaction 0x`);
  expect(await scene.chain.usdcBalance(payer)).toBe(1_000_000n);
  const again = await command(["refund", id, ...args, "--escrow", scene.escrow.address], env);
  expect(again).toMatchObject({ code: 1, stderr: expect.stringMatching(/already been refunded to its payer/) });
});
