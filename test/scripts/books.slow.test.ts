import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { encodeFunctionData, parseAbi, parseUnits } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { beforeAll, expect, test } from "vitest";
import { COMMERCE_PAYMENTS } from "../../contracts/commerce-payments.ts";
import { devAccount } from "../../scripts/embedded/dev-accounts.ts";
import { USDC_ABI } from "../../scripts/embedded/usdc.ts";
import { environmentOf } from "../support/arbiter/verdicts.ts";
import { startTestChain } from "../support/chain/chain.ts";
import { stockFetch } from "../support/escrow/auth-capture.ts";
import { deployOperator } from "../support/escrow/contract.ts";
import { folderForFile, forFile } from "../support/for-file.ts";
import { post, v2 } from "../support/payments/requests.ts";
import { newPayer, signPayment } from "../support/payments/signing.ts";
import { connectOwner } from "../support/service/database.ts";
import { ARBITER_KEY, bareEnvironment, PAY_TO } from "../support/service/environment.ts";
import { RELAYER, startService } from "../support/service/service.ts";

const COMMAND = fileURLToPath(new URL("../../scripts/books.ts", import.meta.url));
const SALES = 3;
const PLAIN = 7n;

const chain = await forFile(startTestChain());
const { address: operator } = await deployOperator(chain, COMMERCE_PAYMENTS, PAY_TO);
const service = await forFile(startService({ chain, config: { escrowAddresses: [operator] } }));

interface Ran {
  readonly code: number;
  readonly rows: readonly Readonly<Record<string, string>>[];
  readonly errors: string;
}

const run = (...args: readonly string[]) => runWith(environmentOf(service), ...args);

const runWith = ({ FACILITATOR_URL: _, ...configured }: ReturnType<typeof environmentOf>, ...args: readonly string[]) =>
  new Promise<Ran>((resolve) => {
    const own = { ESCROW_ADDRESSES: operator, FACILITATOR_PRIVATE_KEY: RELAYER.key };
    const env = { ...bareEnvironment(), ...configured, ...own };
    execFile(process.execPath, [COMMAND, ...args], { env }, (error, output, errors) => {
      const [header = "", ...lines] = output.trimEnd().split("\n");
      const names = header.split(",");
      const rows = lines.map((line) => Object.fromEntries(line.split(",").map((cell, at) => [names[at] ?? "", cell])));
      resolve({ code: error === null ? 0 : Number(error.code), rows, errors });
    });
  });

const sumOf = (rows: Ran["rows"], asset: string): bigint =>
  rows
    .filter((row) => row.asset === asset)
    .reduce((sum, { amount = "" }) => sum + parseUnits(amount, asset === "USDC" ? 6 : 18), 0n);

beforeAll(async () => {
  for (let sale = 0; sale < SALES; sale++)
    expect((await post(`${service.url}/test/basic`, v2(await signPayment(await newPayer(chain))))).status).toBe(200);
  // The contract that holds the operator's money pays its fee to the receiving address.
  const sold = await stockFetch(await newPayer(chain))(`${service.url}/escrow/demo`, { method: "POST" });
  expect(await sold.json()).toMatchObject({ escrow: { status: "released" } });
  const data = encodeFunctionData({ abi: USDC_ABI, functionName: "transfer", args: [PAY_TO, PLAIN] });
  const sending = { account: devAccount(3), to: chain.network.usdc.address, data };
  await chain.client.waitForTransactionReceipt({ hash: await chain.client.sendTransaction(sending) });
  await chain.mine(4);
});

test("Every transfer of the chain is in the books with its type, and the sum is the balance", async () => {
  const { code, rows, errors } = await run();
  const received = await chain.client.readContract({
    address: chain.network.usdc.address,
    abi: parseAbi(["function balanceOf(address) view returns (uint256)"]),
    functionName: "balanceOf",
    args: [PAY_TO],
  });
  expect(sumOf(rows, "USDC")).toBe(received);
  expect(errors).toMatch(/^base, blocks \d+ to \d+: the entries add up to [\d.]+ USDC\n$/);
  expect(code).toBe(0);
  const of = (type: string) => rows.filter((row) => row.type === type);
  expect(of("sale").map(({ amount, about }) => [amount, about])).toEqual(new Array(SALES).fill(["0.25", "test.basic"]));
  expect(of("fee")).toHaveLength(1);
  expect(of("other").map(({ amount }) => amount)).toEqual(["0.000007"]);
});

test("Gas equals the receipts of our transactions", async () => {
  const { rows } = await run();
  const gas = rows.filter(({ type }) => type === "gas");
  // One payment each by the facilitator, then a hold and its release by the arbiter.
  const arbiter = privateKeyToAccount(ARBITER_KEY).address.toLowerCase();
  expect(gas.map(({ account }) => account)).toEqual([...new Array(SALES).fill(RELAYER.address), arbiter, arbiter]);
  for (const { transaction, amount = "", account, block } of gas) {
    const receipt = await chain.client.getTransactionReceipt({ hash: transaction as `0x${string}` });
    expect(parseUnits(amount, 18)).toBe(-(receipt.gasUsed * receipt.effectiveGasPrice));
    expect([account, block]).toEqual([receipt.from.toLowerCase(), String(receipt.blockNumber)]);
  }
  expect(new Set(gas.map(({ transaction }) => transaction)).size).toBe(gas.length);
});

test("Days add up the same entries, and a day without payments has none", async () => {
  const [{ rows }, { rows: days }] = [await run(), await run("--days")];
  for (const asset of ["USDC", "ETH"]) expect(sumOf(days, asset)).toBe(sumOf(rows, asset));
  expect(days.reduce((sum, { transactions }) => sum + Number(transactions), 0)).toBe(rows.length);
  expect(await run("--from", "2020-01-01", "--to", "2020-01-02")).toMatchObject({ rows: [] });
});

test("A sale without a transfer, and an invalid day, are named", async () => {
  const owner = await forFile(connectOwner(service.database));
  const { rows } = await owner.query("SELECT tx FROM payment WHERE route = 'test.basic' LIMIT 1");
  await owner.query("UPDATE payment SET tx = sha256(tx) WHERE tx = $1", [rows[0].tx]);
  const { code, errors } = await run();
  expect([code, errors]).toEqual([1, expect.stringContaining("a sale without a transfer, 0x")]);
  expect(await run("--from", "31.1.2026")).toMatchObject({ code: 2, errors: expect.stringContaining("Usage:") });
});

test("The database is also found by a file with its URL", async () => {
  const { DATABASE_URL = "", ...others } = environmentOf(service);
  const file = join(await folderForFile("books-"), "url");
  await writeFile(file, DATABASE_URL);
  const found = await runWith({ ...others, DATABASE_URL_FILE: file }, "--from", "2020-01-01", "--to", "2020-01-02");
  expect(found).toMatchObject({ code: 0, rows: [] });
});
