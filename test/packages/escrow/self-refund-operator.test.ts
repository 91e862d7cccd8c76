import { type Address, concat, createClient, custom, getAddress, type Hex, parseAbi } from "viem";
import { expect, test, vi } from "vitest";
import { COMMERCE_PAYMENTS } from "../../../contracts/commerce-payments.ts";
import { findHold, selfRefund } from "../../../packages/escrow/src/index.ts";
import { refundCommand } from "../../../packages/escrow/src/refund-command.ts";
import type { RefundTarget } from "../../../packages/escrow/src/self-refund.ts";
import { devAccount, privateKeyOf } from "../../../scripts/embedded/dev-accounts.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { deployOperator } from "../../support/escrow/contract.ts";
import { buyFrom, haiku, newBuyer, openShop } from "../../support/escrow/sale.ts";
import { forFile } from "../../support/for-file.ts";

/** Runtime code that emits an event with the four topics and the data that it is called with, and answers nothing. */
const LIAR: Hex = "0x60803611600857005b608036036080600037606035604035602035600035608036036000a400";

// Every test moves the chain's clock on, and needs holds of its own.

const chain = await forFile(startTestChain());
const operator = await deployOperator(chain);
const { client } = chain;
/** Someone with gas who is neither the buyer nor the merchant. */
const anybody = devAccount(7);
const forward = () => Promise.reject(new Error("Nobody arbitrates."));
const shop = await openShop({ chain, arbiter: { url: "http://127.0.0.1:9" } }, haiku, {
  escrow: operator.address,
  forward,
});
const refund = (target: RefundTarget) => selfRefund({ ...target, account: anybody, client });

/** A hold by the stock client whose delivery no arbiter hears of. The clients go by the chain's time. */
async function held() {
  const { timestamp } = await client.getBlock();
  vi.useFakeTimers({ toFake: ["Date"], now: Number(timestamp) * 1000 });
  const buyer = await newBuyer(chain);
  const { id } = await buyFrom(shop, buyer, { pays: "auth-capture" }).finally(() => vi.useRealTimers());
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

test("at 1799 s it is refused with the time; at 1800 s anybody refunds it, named in whatever way", async () => {
  const holds = [await held(), await held(), await held()] as const;
  const [{ id, escrow, custody, info, buyer, after }, second, third] = holds;
  expect([escrow, custody]).toEqual([getAddress(operator.address), COMMERCE_PAYMENTS.escrow]);
  await after(1799);
  const byTerms = { escrow: operator.address, paymentInfo: info };
  await expect(refund(byTerms)).rejects.toMatchObject({
    code: "too_early",
    message: expect.stringMatching(/in 0 min 1 s/),
  });
  await third.after(1800);
  expect(await refund(byTerms)).toMatchObject({ id, payer: buyer.address, amount: 100_000n, isPaid: true });
  await refund({ paymentId: second.id });
  await refund({ transaction: third.transaction });
  expect(await Promise.all(holds.map((hold) => chain.usdcBalance(hold.buyer.address)))).toEqual(
    Array(3).fill(1_000_000n),
  );
  await expect(refund(byTerms)).rejects.toMatchObject({ code: "already_refunded" });
});

test("what USDC refuses to pay stays held, and is refunded as soon as USDC pays", async () => {
  const { id, buyer, after } = await held();
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
])("what somebody else refunds %s has been refunded", async (_, moment) => {
  const { id, after } = await held();
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

test("anybody's contract can tell of the same hold; the refund is found all the same", async () => {
  const { id, transaction, escrow, after } = await held();
  const { logs } = await client.getTransactionReceipt({ hash: transaction });
  const told = logs.find(({ address }) => getAddress(address) === escrow) ?? expect.fail("There is no event.");
  const liar: Address = "0x00000000000000000000000000000000c0ffee55";
  await client.setCode({ address: liar, bytecode: LIAR });
  const hash = await client.sendTransaction({
    account: anybody,
    to: liar,
    data: concat([...(told.topics as Hex[]), told.data]),
  });
  const copied = await client.waitForTransactionReceipt({ hash });
  expect(copied.logs).toMatchObject([{ address: liar, topics: told.topics, data: told.data }]);
  await after(1800);
  expect(await findHold(client, { id })).toMatchObject({ id, escrow, transaction });
  expect(await refund({ paymentId: id })).toMatchObject({ id });
  await expect(refund({ transaction: hash })).rejects.toThrow();
});

test("what its payer took back itself is said to be, by the command too", async () => {
  const { id, info, buyer, after } = await held();
  await after(86_600);
  const abi = parseAbi([
    "struct PaymentInfo { address operator; address payer; address receiver; address token; uint120 maxAmount; uint48 preApprovalExpiry; uint48 authorizationExpiry; uint48 refundExpiry; uint16 minFeeBps; uint16 maxFeeBps; address feeReceiver; uint256 salt; }",
    "function reclaim(PaymentInfo info)",
  ]);
  await chain.setBalance(buyer.address, 10n ** 18n);
  const call = { address: COMMERCE_PAYMENTS.escrow, abi, functionName: "reclaim", args: [info] } as const;
  const reclaim = await client.writeContract({ ...call, account: buyer });
  await client.waitForTransactionReceipt({ hash: reclaim });
  expect(await chain.usdcBalance(buyer.address)).toBe(1_000_000n);
  const said = `The payer has taken payment ${id} back itself, from ${COMMERCE_PAYMENTS.escrow} (reclaim), in transaction ${reclaim}.`;
  await expect(refund({ paymentId: id })).rejects.toMatchObject({ code: "already_reclaimed", message: said });
  const printed = vi.spyOn(console, "error").mockImplementation(() => undefined);
  vi.stubEnv("PRIVATE_KEY", privateKeyOf(anybody));
  expect(await refundCommand([id, "--rpc", chain.rpcUrl])).toBe(1);
  expect(printed.mock.calls).toEqual([[said]]);
  vi.unstubAllEnvs();
  printed.mockRestore();
});
