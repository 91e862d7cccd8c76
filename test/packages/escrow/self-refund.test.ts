import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { type Address, concat, createClient, custom, getAddress, type Hex, parseAbi, zeroHash } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { expect, test, vi } from "vitest";
import { escrowAbi } from "../../../contracts/abi.ts";
import { COMMERCE_PAYMENTS } from "../../../contracts/commerce-payments.ts";
import { findHold, selfRefund } from "../../../packages/escrow/src/index.ts";
import { refundCommand } from "../../../packages/escrow/src/refund-command.ts";
import type { RefundTarget } from "../../../packages/escrow/src/self-refund.ts";
import { devAccount, privateKeyOf } from "../../../scripts/embedded/dev-accounts.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { deployEscrow, deployOperator } from "../../support/escrow/contract.ts";
import { buyFrom, haiku, newBuyer, openShop, type Pays, statusOf } from "../../support/escrow/sale.ts";
import { forFile } from "../../support/for-file.ts";
import { ARBITER_KEY, bareEnvironment } from "../../support/service/environment.ts";

const CLI = fileURLToPath(new URL("../../../packages/escrow/src/cli.ts", import.meta.url));
const call = promisify(execFile);
/** Runtime code that emits an event with the four topics and the data from its calldata, and returns nothing. */
const LIAR: Hex = "0x60803611600857005b608036036080600037606035604035602035600035608036036000a400";

// Every test advances the chain's clock and makes its own holds.

const chain = await forFile(startTestChain());
const [escrow, operator] = [await deployEscrow(chain), await deployOperator(chain)];
const { client } = chain;
/** An account with gas that belongs to neither party. */
const anybody = devAccount(7);
const forward = () => Promise.reject(new Error("There is no arbiter."));
const shop = await openShop({ chain, arbiter: { url: "http://127.0.0.1:9" } }, haiku, {
  escrow: [escrow.address, operator.address],
  forward,
});
const contractOf = (pays: Pays) => (pays === "commerce" ? escrow : operator).address;
const refund = (target: RefundTarget) => selfRefund({ ...target, account: anybody, client });

/** A hold whose delivery reaches no arbiter. The clients use the chain's time. */
async function held(pays: Pays) {
  const { timestamp } = await client.getBlock();
  vi.useFakeTimers({ toFake: ["Date"], now: Number(timestamp) * 1000 });
  const buyer = await newBuyer(chain);
  const { id } = await buyFrom(shop, buyer, { pays }).finally(() => vi.useRealTimers());
  const found = (await findHold(client, { id })) ?? expect.fail("The hold is not found.");
  const { blockNumber } = await client.getTransactionReceipt({ hash: found.transaction });
  const { timestamp: at } = await client.getBlock({ blockNumber });
  /** Mines a block this many seconds after the hold. */
  const after = async (seconds: number) => {
    await client.setNextBlockTimestamp({ timestamp: at + BigInt(seconds) });
    await chain.mine();
  };
  return { ...found, buyer, after };
}

test.each<[Pays, Address]>([
  ["commerce", getAddress(escrow.address)],
  ["auth-capture", COMMERCE_PAYMENTS.escrow],
])(
  "A hold by %s cannot be refunded at 1799 s, and at 1800 s anybody can refund it by any of its names",
  async (pays, custody) => {
    const holds = [await held(pays), await held(pays), await held(pays)] as const;
    const [{ id, info, buyer, after, ...found }, second, third] = holds;
    expect([found.escrow, found.custody]).toEqual([getAddress(contractOf(pays)), custody]);
    await after(1799);
    const byTerms = { escrow: contractOf(pays), paymentInfo: info };
    await expect(refund(byTerms)).rejects.toMatchObject({
      code: "too_early",
      message: expect.stringMatching(/in 0 min 1 s/),
    });
    expect(await statusOf({ chain, escrow, operator }, id, pays)).toBe("held");
    await third.after(1800);
    expect(await refund(byTerms)).toMatchObject({ id, payer: buyer.address, amount: 100_000n, isPaid: true });
    await refund({ paymentId: second.id });
    await refund({ transaction: third.transaction });
    expect(await Promise.all(holds.map((hold) => chain.usdcBalance(hold.buyer.address)))).toEqual(
      Array(3).fill(1_000_000n),
    );
    await expect(refund(byTerms)).rejects.toMatchObject({ code: "already_refunded" });
  },
);

test("The escrow owes what USDC refuses to pay", async () => {
  const { id, buyer, after } = await held("commerce");
  await after(1800);
  await chain.blacklist(buyer.address);
  expect(await refund({ paymentId: id, escrow: escrow.address })).toMatchObject({ isPaid: false });
  expect(await statusOf({ chain, escrow }, id)).toBe("refunded");
});

test("With the operator, what USDC refuses to pay stays held and is refunded once USDC pays", async () => {
  const { id, buyer, after } = await held("auth-capture");
  await after(1800);
  await chain.blacklist(buyer.address);
  await expect(refund({ paymentId: id })).rejects.toMatchObject({
    code: "not_payable",
    message: expect.stringMatching(
      /^Payment 0x\w{64} cannot be refunded to 0x\w{40} at present: .*blacklisted.* try again later\.$/,
    ),
  });
  await chain.unblacklist(buyer.address);
  expect(await refund({ paymentId: id })).toMatchObject({ id, isPaid: true });
  expect(await chain.usdcBalance(buyer.address)).toBe(1_000_000n);
});

test.each([
  ["before it is sent", /^eth_(fillTransaction|estimateGas)$/],
  ["before it is mined", /^eth_sendRawTransaction$/],
])("A payment that somebody else refunds %s is reported as refunded", async (_, moment) => {
  const { id, after } = await held("auth-capture");
  await after(1800);
  const others = new Set([() => refund({ paymentId: id })]);
  const request = async ({ method, params }: { readonly method: string; readonly params?: unknown }) => {
    if (moment.test(method)) for (const other of others) others.delete(other) && (await other());
    return client.request({ method, params } as never);
  };
  const slow = createClient({ transport: custom({ request }) });
  const late = selfRefund({ paymentId: id, account: devAccount(6), client: slow });
  await expect(late).rejects.toMatchObject({ code: "already_refunded" });
});

test("The refund finds the hold even if another contract emits the same event", async () => {
  const { id, transaction, escrow: contract, after } = await held("auth-capture");
  const { logs } = await client.getTransactionReceipt({ hash: transaction });
  const original = logs.find(({ address }) => getAddress(address) === contract) ?? expect.fail("There is no event.");
  const liar: Address = "0x00000000000000000000000000000000c0ffee55";
  await client.setCode({ address: liar, bytecode: LIAR });
  const hash = await client.sendTransaction({
    account: anybody,
    to: liar,
    data: concat([...(original.topics as Hex[]), original.data]),
  });
  const copied = await client.waitForTransactionReceipt({ hash });
  expect(copied.logs).toMatchObject([{ address: liar, topics: original.topics, data: original.data }]);
  await after(1800);
  expect(await findHold(client, { id })).toMatchObject({ id, escrow: contract, transaction });
  expect(await refund({ paymentId: id })).toMatchObject({ id });
  await expect(refund({ transaction: hash })).rejects.toThrow();
});

test("A payment that is not held, was released, or does not exist is refused with its own code", async () => {
  const { id, info, transaction } = await held("commerce");
  const unknownId: Hex = `0x${"ab".repeat(32)}`;
  await expect(refund({ paymentId: unknownId })).rejects.toMatchObject({ code: "not_found" });
  await expect(refund({ paymentId: id, escrow: anybody.address })).rejects.toMatchObject({ code: "not_found" });
  const unknown = { escrow: escrow.address, paymentInfo: { ...info, salt: 1n } };
  await expect(refund(unknown)).rejects.toMatchObject({ code: "not_found" });
  const released = await client.writeContract({
    account: privateKeyToAccount(ARBITER_KEY),
    address: escrow.address,
    abi: escrowAbi,
    functionName: "release",
    args: [info, zeroHash, "0x"],
  });
  await client.waitForTransactionReceipt({ hash: released });
  await expect(refund({ transaction: released })).rejects.toMatchObject({ code: "not_found" });
  await expect(refund({ transaction })).rejects.toMatchObject({ code: "already_released" });
});

test("A payment that its payer reclaimed is reported as such, by the command too", async () => {
  const { id, info, buyer, after } = await held("auth-capture");
  await after(86_600);
  const abi = parseAbi([
    "struct PaymentInfo { address operator; address payer; address receiver; address token; uint120 maxAmount; uint48 preApprovalExpiry; uint48 authorizationExpiry; uint48 refundExpiry; uint16 minFeeBps; uint16 maxFeeBps; address feeReceiver; uint256 salt; }",
    "function reclaim(PaymentInfo info)",
  ]);
  await chain.setBalance(buyer.address, 10n ** 18n);
  const taking = { address: COMMERCE_PAYMENTS.escrow, abi, functionName: "reclaim", args: [info] } as const;
  const reclaim = await client.writeContract({ ...taking, account: buyer });
  await client.waitForTransactionReceipt({ hash: reclaim });
  expect(await chain.usdcBalance(buyer.address)).toBe(1_000_000n);
  const message = `The payer has taken payment ${id} back itself, from ${COMMERCE_PAYMENTS.escrow} (reclaim), in transaction ${reclaim}.`;
  await expect(refund({ paymentId: id })).rejects.toMatchObject({ code: "already_reclaimed", message });
  const printed = vi.spyOn(console, "error").mockImplementation(() => undefined);
  vi.stubEnv("PRIVATE_KEY", privateKeyOf(anybody));
  expect(await refundCommand([id, "--rpc", chain.rpcUrl])).toBe(1);
  expect(printed.mock.calls).toEqual([[message]]);
  vi.unstubAllEnvs();
  printed.mockRestore();
});

const command = (args: readonly string[], env: Record<string, string> = {}) =>
  call(process.execPath, [CLI, ...args], { env: { ...bareEnvironment(), ...env } }).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    ({ code, stdout, stderr }: { code: number; stdout: string; stderr: string }) => ({ code, stdout, stderr }),
  );

test("The command refuses wrong usage and prints what is expected", async () => {
  const id = `0x${"ab".repeat(32)}`;
  const rpc = ["--rpc", chain.rpcUrl];
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

test("The command exits 2 for wrong usage, 1 too early, and 0 after a refund by transaction or id", async () => {
  const { id, buyer, transaction, after } = await held("commerce");
  const args = ["--rpc", chain.rpcUrl, "--key-env", "SENDER"];
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
  expect(done.stdout).toContain(`Payment ${id}: 0.10 USDC was refunded to ${buyer.address} in transaction 0x`);
  expect(await chain.usdcBalance(buyer.address)).toBe(1_000_000n);
  const again = await command(["refund", id, ...args, "--escrow", escrow.address], env);
  expect(again).toMatchObject({ code: 1, stderr: expect.stringMatching(/already been refunded to its payer/) });
});
