import { encodeFunctionData, type Hex, parseAbi } from "viem";
import { afterEach, describe, expect, test } from "vitest";
import { createTransactions } from "../../../../api/arbiter/chain.ts";
import { createChain } from "../../../../api/platform/chain/chain.ts";
import { MULTICALL3 } from "../../../../api/platform/chain/read-at-block.ts";
import { eachNetwork } from "../../../../api/platform/networks.ts";
import type { Address } from "../../../../api/platform/wallet.ts";
import { devAccount } from "../../../../scripts/embedded/dev-accounts.ts";
import { USDC_ABI } from "../../../../scripts/embedded/usdc.ts";
import { reorganize } from "../../../support/chain/blocks.ts";
import { startTestChain } from "../../../support/chain/chain.ts";
import { startFaultyNode, stoppedAt } from "../../../support/chain/nodes.ts";
import { askNode, type Call, type Reply, refuse, replyTo } from "../../../support/chain/rpc.ts";
import { forFile } from "../../../support/for-file.ts";
import { broadcast } from "../../../support/payments/on-chain.ts";
import { PRICES } from "../../../support/payments/prices.ts";
import { BASE, newPayer, type Signed, signPayment } from "../../../support/payments/signing.ts";
import { PAY_TO } from "../../../support/service/environment.ts";

const chain = await forFile(startTestChain({ slotsInAnEpoch: 1 }));
const node = await forFile(startFaultyNode(chain));
afterEach(() => node.become(null));
const transactions = createTransactions(
  eachNetwork((network) => createChain(network, { rpcUrl: node.url, logBlockRange: 1_000 })),
);
const { client } = chain;
const usdc = BASE.usdc.address;
const lower = (text: string) => text.toLowerCase() as Address;

const read = (transaction: Hex, from: string, network: string = BASE.id) =>
  transactions.read({ network, transaction, from: lower(from) });

const calls = parseAbi([
  "struct Call { address target; bool allowFailure; bytes callData; }",
  "function aggregate3(Call[] calls) payable returns ((bool success, bytes returnData)[])",
]);
const erc20 = parseAbi([
  "function approve(address spender, uint256 value) returns (bool)",
  "function transferFrom(address from, address to, uint256 value) returns (bool)",
]);

const withAuthorization = ({ authorization: a, signature }: Signed): Hex =>
  encodeFunctionData({
    abi: USDC_ABI,
    functionName: "transferWithAuthorization",
    args: [a.from, a.to, a.value, a.validAfter, a.validBefore, a.nonce, signature],
  });

/** Sends all calls in one Multicall3 transaction. */
async function multicall(data: readonly Hex[], target: Address = usdc): Promise<Hex> {
  const hash = await client.writeContract({
    account: devAccount(0),
    address: MULTICALL3,
    abi: calls,
    functionName: "aggregate3",
    args: [data.map((callData) => ({ target, allowFailure: false, callData }))],
  });
  const { status } = await client.waitForTransactionReceipt({ hash });
  expect(status).toBe("success");
  return hash;
}

/** Returns the wallet's payments if the transaction is final, or else the outcome. */
const paymentsIn = async (transaction: Hex, from: string) => {
  const reading = await read(transaction, from);
  return reading.outcome === "final" ? reading.transfers.map(({ to, value }) => [to, value]) : reading.outcome;
};

test("A transaction is final once its block is, and the reading has the block's number and time", async () => {
  const payer = await newPayer(chain);
  const hash = await broadcast(chain, await signPayment(payer));
  expect(await read(hash, payer.address)).toEqual({ outcome: "not_final" });
  await chain.finalize();
  const { blockNumber, logs } = await client.getTransactionReceipt({ hash });
  const { timestamp } = await client.getBlock({ blockNumber });
  expect(await read(hash, payer.address)).toEqual({
    outcome: "final",
    block: Number(blockNumber),
    time: Number(timestamp),
    transfers: [
      {
        ...{ logIndex: logs.at(-1)?.logIndex, asset: usdc, to: PAY_TO, value: PRICES.basic },
        ...{ byAuthorization: true, toHasCode: false },
      },
    ],
  });
  expect(await paymentsIn(hash, PAY_TO)).toEqual([]);
});

describe("The wallet's transfers", () => {
  test("Each payer in a shared transaction sees only its own transfers", async () => {
    const [one, other] = [await newPayer(chain), await newPayer(chain)];
    const signed = [
      await signPayment(one),
      await signPayment(other, { value: 2n }),
      await signPayment(one, { to: devAccount(4).address, value: 3n }),
    ];
    const hash = await multicall(signed.map(withAuthorization));
    await chain.finalize();
    expect(await paymentsIn(hash, one.address)).toEqual([
      [PAY_TO, PRICES.basic],
      [lower(devAccount(4).address), 3n],
    ]);
    expect(await paymentsIn(hash, other.address)).toEqual([[PAY_TO, 2n]]);
  });

  test("Transfers by transfer and transferFrom count, and transfers of zero or to the wallet itself do not", async () => {
    const payer = devAccount(2);
    const send = async (data: Hex) => {
      const hash = await client.sendTransaction({ account: payer, to: usdc, data });
      await client.waitForTransactionReceipt({ hash });
      return hash;
    };
    const transfer = (to: Address, value: bigint) =>
      encodeFunctionData({ abi: USDC_ABI, functionName: "transfer", args: [to, value] });
    const direct = await send(transfer(PAY_TO, 5n));
    await send(encodeFunctionData({ abi: erc20, functionName: "approve", args: [MULTICALL3, 100n] }));
    const from = (to: Address, value: bigint) =>
      encodeFunctionData({ abi: erc20, functionName: "transferFrom", args: [payer.address, to, value] });
    const pulled = await multicall([from(PAY_TO, 0n), from(payer.address, 9n), from(PAY_TO, 7n)]);
    await chain.finalize();
    expect(await paymentsIn(direct, payer.address)).toEqual([[PAY_TO, 5n]]);
    expect(await paymentsIn(pulled, payer.address)).toEqual([[PAY_TO, 7n]]);
  });

  test("A transaction with more than 32 transfers is reported as too_many_transfers", async () => {
    const payer = devAccount(3);
    const approve = encodeFunctionData({ abi: erc20, functionName: "approve", args: [MULTICALL3, 100n] });
    await client.waitForTransactionReceipt({
      hash: await client.sendTransaction({ account: payer, to: usdc, data: approve }),
    });
    const one = encodeFunctionData({ abi: erc20, functionName: "transferFrom", args: [payer.address, PAY_TO, 1n] });
    const most = await multicall(Array<Hex>(32).fill(one));
    const more = await multicall(Array<Hex>(33).fill(one));
    await chain.finalize();
    expect(await paymentsIn(most, payer.address)).toHaveLength(32);
    expect(await paymentsIn(more, payer.address)).toBe("too_many_transfers");
  });
});

/** Returns `byAuthorization` and `toHasCode` of each transfer if the transaction is final, or else the outcome. */
const madeIn = async (transaction: Hex, from: string) => {
  const reading = await read(transaction, from);
  return reading.outcome === "final"
    ? reading.transfers.map(({ byAuthorization, toHasCode }) => [byAuthorization, toHasCode])
    : reading.outcome;
};

describe("Authorizations and recipients with code", async () => {
  const payer = devAccount(5);
  const toContract = await signPayment(await newPayer(chain), { to: lower(MULTICALL3) });
  const held = await broadcast(chain, toContract);
  const transfer = encodeFunctionData({ abi: USDC_ABI, functionName: "transfer", args: [PAY_TO, 5n] });
  const direct = await client.sendTransaction({ account: payer, to: usdc, data: transfer });
  await client.waitForTransactionReceipt({ hash: direct });
  await chain.finalize();

  test("The reading distinguishes a transfer by authorization to a contract from a plain transfer to an account", async () => {
    expect(await madeIn(held, toContract.authorization.from)).toEqual([[true, true]]);
    expect(await madeIn(direct, payer.address)).toEqual([[false, false]]);
  });

  test("A recipient that gets code after the payment is reported with code", async () => {
    const deposit = lower(`0x${"de".repeat(20)}`);
    const signed = await signPayment(await newPayer(chain), { to: deposit });
    const hash = await broadcast(chain, signed);
    await chain.finalize();
    expect(await madeIn(hash, signed.authorization.from)).toEqual([[true, false]]);
    await askNode(chain.rpcUrl)({ id: 1, method: "anvil_setCode", params: [deposit, "0x00"] });
    expect(await madeIn(hash, signed.authorization.from)).toEqual([[true, true]]);
  });

  test.each([
    ["an error", (call) => refuse(call, -32000, "header not found")],
    ["null", (call) => replyTo(call, null)],
    [
      "first an empty result, then an error",
      (call, seen) => (seen === 0 ? replyTo(call, "0x") : refuse(call, -32000, "header not found")),
    ],
  ] as const satisfies readonly (readonly [string, (call: Call, seen: number) => Reply])[])(
    "The recipient's code is unknown if the node returns %s",
    async (_, fake) => {
      let seen = 0;
      node.become(async (call, pass) => (call.method === "eth_getCode" ? fake(call, seen++) : pass(call)));
      expect(await madeIn(held, toContract.authorization.from)).toEqual([[true, null]]);
    },
  );

  test("One reading with code is enough", async () => {
    let seen = 0;
    node.become(async (call, pass) =>
      call.method === "eth_getCode" && seen++ === 0 ? replyTo(call, "0x") : pass(call),
    );
    expect(await madeIn(held, toContract.authorization.from)).toEqual([[true, true]]);
  });
});

test("A reverted transaction, an unknown one, and one on an unread network have distinct outcomes", async () => {
  const payer = await newPayer(chain);
  const signed = await signPayment(payer, { value: 10n ** 12n });
  const hash = await client.sendTransaction({
    account: devAccount(0),
    to: usdc,
    data: withAuthorization(signed),
    gas: 200_000n,
  });
  await client.waitForTransactionReceipt({ hash });
  await chain.finalize();
  expect(await paymentsIn(hash, payer.address)).toBe("reverted");
  expect(await paymentsIn(`0x${"ab".repeat(32)}`, payer.address)).toBe("not_found");
  expect(await read(hash, payer.address, "eip155:1")).toEqual({ outcome: "network_not_read" });
});

test("A transaction removed by a reorganization is reported as not found", async () => {
  const payer = await newPayer(chain);
  await chain.mine(2);
  const hash = await broadcast(chain, await signPayment(payer));
  expect(await paymentsIn(hash, payer.address)).toBe("not_final");
  await reorganize(chain, 1, []);
  expect(await paymentsIn(hash, payer.address)).toBe("not_found");
});

describe("Nodes that lag, fail, or disagree", async () => {
  const payer = await newPayer(chain);
  const before = await client.getBlockNumber();
  const hash = await broadcast(chain, await signPayment(payer));
  await chain.finalize();
  const { logs } = await client.getTransactionReceipt({ hash });

  test("A node stuck before the block reports the transaction as not found", async () => {
    node.become(stoppedAt(before));
    expect(await paymentsIn(hash, payer.address)).toBe("not_found");
  });

  test("A node with the block that does not report it as final yields not_final", async () => {
    node.become(stoppedAt(before + 1n));
    expect(await paymentsIn(hash, payer.address)).toBe("not_final");
  });

  test("A node that does not respond yields unavailable", async () => {
    node.become(async () => null);
    expect(await paymentsIn(hash, payer.address)).toBe("unavailable");
  });

  test("Two nodes that report different amounts in turn yield unavailable", async () => {
    let asked = 0;
    node.become(async (call, pass) => {
      const reply = await pass(call);
      if (call.method !== "eth_getTransactionReceipt" || asked++ % 2 === 0) return reply;
      const altered = (reply.result as { logs: { data: Hex }[] }).logs.map((log) => ({
        ...log,
        data: `0x${"1".padStart(64, "0")}`,
      }));
      return replyTo(call, { ...(reply.result as object), logs: altered });
    });
    expect(await paymentsIn(hash, payer.address)).toBe("unavailable");
    expect(asked).toBe(4);
  });

  test("A Transfer event of another contract is not counted", async () => {
    node.become(async (call, pass) => {
      const reply = await pass(call);
      if (call.method !== "eth_getTransactionReceipt") return reply;
      const { logs: real, ...receipt } = reply.result as { logs: { address: Address; logIndex: Hex }[] };
      const forged = real.map((log, index) => ({
        ...log,
        address: MULTICALL3,
        logIndex: `0x${(90 + index).toString(16)}`,
      }));
      return replyTo(call, { ...receipt, logs: [...real, ...forged] });
    });
    expect(await paymentsIn(hash, payer.address)).toEqual([[PAY_TO, PRICES.basic]]);
    expect(logs).toHaveLength(2);
  });
});
