import { execFile } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Hex } from "viem";
import { generatePrivateKey, privateKeyToAddress } from "viem/accounts";
import { expect, test } from "vitest";
import { readOrder } from "../../../packages/seller-check/src/order.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { openShop, quoting, type ShopResponse } from "../../support/sellers/shop.ts";

const CLI = join(fileURLToPath(new URL("../../..", import.meta.url)), "packages/seller-check/src/cli.ts");
const call = promisify(execFile);

const chain = await forFile(startTestChain());
const key: Hex = generatePrivateKey();
await chain.fund(privateKeyToAddress(key), 100_000n);
const run = (...args: string[]) =>
  call(process.execPath, [CLI, ...args], { env: { ...process.env, PRIVATE_KEY: key } });

test("It examines a seller and prints a line per check", async () => {
  const shop = await forFile(openShop(chain));
  const other = ["--other", "/sonnet"];
  const { stdout } = await run(`${shop.url}/haiku`, "--rpc", chain.rpcUrl, ...other);
  expect(stdout.match(/^PASS/gm)).toHaveLength(8);
  expect(stdout).toMatch(/^Level full\. The exam sent \d+ requests and spent 0\.003 USDC\.$/m);
});

test("A route that sells only to POST is examined with --method POST, as the report suggests", async () => {
  const onlyPost = (response: ShopResponse, { method }: { readonly method: string }): ShopResponse =>
    method === "GET" ? { status: 405, headers: { allow: "POST" }, body: "" } : response;
  const shop = await forFile(openShop(chain, onlyPost));
  const refused = await run(`${shop.url}/haiku`, "--rpc", chain.rpcUrl).catch((error) => error);
  expect(refused).toMatchObject({
    code: 1,
    stdout: expect.stringContaining("answers GET with 405. If it is sold by POST, add --method POST."),
  });
});

test("After a failed check it exits with 1, and its JSON report has the requests that show the failure", async () => {
  const shop = await forFile(openShop(chain, "public cache"));
  const failed = await run(`${shop.url}/haiku`, "--rpc", chain.rpcUrl, "--json").catch((error) => error);
  expect(failed.code).toBe(1);
  const { level, checks, exchanges } = JSON.parse(failed.stdout);
  expect(level).toBe("safe");
  const caching = checks.find(({ check }: { check: string }) => check === "caching");
  const [finding] = caching.findings;
  expect(finding).toMatchObject({ holds: false, statement: expect.stringContaining("public, max-age=60") });
  expect(exchanges[finding.exchanges[0] - 1].answer).toMatchObject({ status: 200 });
});

test("It pays nothing above the price ceiling and exits with 1", async () => {
  const shop = await forFile(openShop(chain));
  const before = await chain.usdcBalance(privateKeyToAddress(key));
  const failed = await run(`${shop.url}/haiku`, "--rpc", chain.rpcUrl, "--max-price", "0.0009").catch((error) => error);
  expect(failed).toMatchObject({
    code: 1,
    stdout: expect.stringContaining("an entry costs 0.001 USDC, but the ceiling is 0.0009 USDC"),
  });
  expect(await chain.usdcBalance(privateKeyToAddress(key))).toBe(before);
});

test("With a token that is not on the chain it gives no verdict, exits with 2, and reports that", async () => {
  const asset = `0x${"ab".repeat(20)}`;
  const entry = (terms: Record<string, unknown>) => ({
    ...terms,
    accepts: (terms.accepts as object[]).map((one) => ({ ...one, asset })),
  });
  const shop = await forFile(openShop(chain, quoting(entry)));
  const failed = await run(`${shop.url}/haiku`, "--rpc", chain.rpcUrl).catch((error) => error);
  expect(failed).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/there is no contract at 0x[aAbB]+, the token/),
  });
});

test("With an unreachable chain it gives no verdict and exits with 2", async () => {
  const failed = await run("http://127.0.0.1:9/haiku", "--rpc", "http://127.0.0.1:9").catch((error) => error);
  expect(failed).toMatchObject({ code: 2, stderr: expect.stringContaining("nothing was judged") });
});

const URL_AND_RPC = ["http://localhost/haiku", "--rpc", "http://localhost:8545"];
const KEY = { PRIVATE_KEY: `0x${"11".repeat(32)}` };

test.each<[string[], object, RegExp]>([
  [[], KEY, /Expected one URL; got 0/],
  [["http://localhost/a", "http://localhost/b"], KEY, /Expected one URL; got 2/],
  [["http://localhost/haiku"], KEY, /--rpc is missing/],
  [["ftp://localhost/", "--rpc", "http://localhost"], KEY, /The URL "ftp:\/\/localhost\/" is not an http/],
  [URL_AND_RPC, {}, /PRIVATE_KEY is not set/],
  [URL_AND_RPC, { PRIVATE_KEY: "secret" }, /PRIVATE_KEY is not a private key/],
  [[...URL_AND_RPC, "--max-price", "free"], KEY, /--max-price "free" is not an amount/],
  [[...URL_AND_RPC, "--max-price", "0"], KEY, /--max-price "0" is not an amount/],
  [[...URL_AND_RPC, "--asset", "USDC"], KEY, /--asset "USDC" is not an address/],
  [[...URL_AND_RPC, "--method", "head"], KEY, /--method HEAD is not a method that sells/],
  [[...URL_AND_RPC, "--other", "http://elsewhere/"], KEY, /expected another URL of http:\/\/localhost/],
  [[...URL_AND_RPC, "--fast"], KEY, /Unknown option '--fast'/],
])("Wrong usage %j is refused with the expected value", (args, env, message) => {
  expect(() => readOrder(args, env as Record<string, string>)).toThrow(message);
});
