import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { encodeFunctionData } from "viem";
import { beforeAll, describe, expect, test } from "vitest";
import { eachNetwork } from "../../api/platform/networks.ts";
import { COMMERCE_PAYMENTS } from "../../contracts/commerce-payments.ts";
import { devAccount } from "../../scripts/embedded/dev-accounts.ts";
import { USDC_ABI } from "../../scripts/embedded/usdc.ts";
import { environmentOf } from "../support/arbiter/verdicts.ts";
import { startTestChain } from "../support/chain/chain.ts";
import { startFaultyNode } from "../support/chain/nodes.ts";
import { refuse } from "../support/chain/rpc.ts";
import { stockFetch } from "../support/escrow/auth-capture.ts";
import { deployOperator } from "../support/escrow/contract.ts";
import { forFile } from "../support/for-file.ts";
import { PRICES } from "../support/payments/prices.ts";
import { post, v2 } from "../support/payments/requests.ts";
import { newPayer, type Signed, signPayment } from "../support/payments/signing.ts";
import { binary, connectOwner } from "../support/service/database.ts";
import { bareEnvironment, PAY_TO } from "../support/service/environment.ts";
import { startService } from "../support/service/service.ts";

const COMMAND = fileURLToPath(new URL("../../scripts/reconcile.ts", import.meta.url));

const chain = await forFile(startTestChain());
const node = await forFile(startFaultyNode(chain));
const sepolia = await forFile(startTestChain({ network: "eip155:84532" }));
const { address: operator } = await deployOperator(chain, COMMERCE_PAYMENTS, PAY_TO);
const service = await forFile(
  startService({
    chain,
    config: { escrowAddresses: [operator], rpcUrls: eachNetwork(() => node.url) },
  }),
);
const owner = await forFile(connectOwner(service.database));

interface Found {
  readonly network: string;
  readonly unknown: readonly Record<string, unknown>[];
  readonly unshown: readonly Record<string, unknown>[];
}

/** Runs `npm run reconcile` for the service, on the network that it sells on. */
const run = (...args: readonly string[]) => runOn(["--network", "base"], args);

const runOn = (networks: readonly string[], args: readonly string[]) =>
  new Promise<{ readonly code: number; readonly output: string; readonly errors: string }>((resolve) => {
    const env = {
      ...bareEnvironment(),
      ...environmentOf(service),
      ...{ LOG_BLOCK_RANGE: "9000", ESCROW_ADDRESSES: operator, BASE_SEPOLIA_RPC_URL: sepolia.rpcUrl },
    };
    execFile(process.execPath, [COMMAND, ...networks, ...args], { env }, (error, output, errors) =>
      resolve({ code: error === null ? 0 : Number(error.code), output, errors }),
    );
  });

async function reconciled(...args: readonly string[]) {
  const { code, output, errors } = await run("--json", ...args);
  expect(errors).toBe("");
  return { code, found: (JSON.parse(output) as Found[])[0] as Found };
}

async function paid(): Promise<Signed> {
  const signed = await signPayment(await newPayer(chain));
  expect((await post(`${service.url}/test/basic`, v2(signed))).status).toBe(200);
  return signed;
}

/** Simulates a restore to an earlier time, which only the database's owner can do. */
async function forget({ authorization }: Signed): Promise<void> {
  await owner.query("BEGIN");
  await owner.query("SET LOCAL session_replication_role = replica");
  await owner.query("DELETE FROM payment WHERE nonce = $1", [binary(authorization.nonce)]);
  await owner.query("COMMIT");
}

let kept: Signed;
let lost: Signed;

beforeAll(async () => {
  [kept, lost] = [await paid(), await paid()];
  // The contract that holds the operator's money pays its fee to the receiving address immediately.
  const sold = await stockFetch(await newPayer(chain))(`${service.url}/escrow/demo`, { method: "POST" });
  expect(await sold.json()).toMatchObject({ escrow: { status: "released" } });
  await chain.mine(4);
});

describe("npm run reconcile", () => {
  test("It exits with 0 and finds nothing if journal and chain agree", async () => {
    expect(await reconciled()).toMatchObject({ code: 0, found: { network: "eip155:8453", unknown: [], unshown: [] } });
    expect((await run()).output).toMatch(/^base, blocks 0 to \d+: 0 found\n$/);
  });

  test("It compares every network, although the escrow is on only one", async () => {
    const { code, output, errors } = await runOn([], ["--from", "0"]);
    expect([code, errors]).toEqual([0, ""]);
    expect(output).toMatch(/^base, blocks 0 to \d+: 0 found\nbase-sepolia, blocks 0 to \d+: 0 found\n$/);
  });

  test("It lists what a restored journal has lost, in ranges that the provider accepts, and exits with 1", async () => {
    await forget(lost);
    node.become(async (call, pass) => {
      const [range] = call.params as [{ fromBlock: string; toBlock: string }];
      const isWide = call.method === "eth_getLogs" && Number(range.toBlock) - Number(range.fromBlock) >= 5;
      return isWide ? refuse(call, -32_602, "range 40 exceeds limit of 5") : pass(call);
    });
    const { code, found } = await reconciled();
    node.become(null);
    const { from, nonce } = lost.authorization;
    expect(code).toBe(1);
    expect(found.unknown).toMatchObject([{ from: from.toLowerCase(), nonce, value: String(PRICES.basic), row: null }]);
    expect(found.unshown).toEqual([]);
    const { output } = await run();
    expect(output).toContain(nonce);
    expect(output).not.toContain(kept.authorization.nonce);
  });

  test("It lists a plain transfer, and no transfer of zero", async () => {
    for (const value of [0n, 7n]) {
      const data = encodeFunctionData({ abi: USDC_ABI, functionName: "transfer", args: [PAY_TO, value] });
      const account = devAccount(3);
      await chain.client.waitForTransactionReceipt({
        hash: await chain.client.sendTransaction({ account, to: chain.network.usdc.address, data }),
      });
    }
    await chain.mine(4);
    const { found } = await reconciled("--from", "1");
    expect(found.unknown).toMatchObject([{ nonce: lost.authorization.nonce }, { value: "7", nonce: null }]);
    expect((await run()).output).toContain("a plain transfer");
  });

  test("It lists a sale that is missing on the chain, and a payment that the journal calls void", async () => {
    const nonce = binary(kept.authorization.nonce);
    await owner.query("UPDATE payment SET tx = sha256(tx) WHERE nonce = $1", [nonce]);
    const { code, found } = await reconciled();
    expect(code).toBe(1);
    expect(found.unshown).toMatchObject([
      { state: "fulfilled", nonce: kept.authorization.nonce, payer: kept.authorization.from.toLowerCase() },
    ]);
    expect(found.unknown).toContainEqual(
      expect.objectContaining({ nonce: kept.authorization.nonce, row: "fulfilled" }),
    );
    expect((await run()).output).toContain("fulfilled and not on the chain");
  });

  test("It names invalid arguments and an unreachable node, and exits with 2", async () => {
    expect(await run("--from", "tomorrow")).toMatchObject({ code: 2, errors: expect.stringContaining("Usage:") });
    node.become(async () => null);
    expect(await run()).toMatchObject({
      code: 2,
      output: "",
      errors: expect.stringContaining("The comparison failed"),
    });
    node.become(null);
  });
});
