import { execFile, spawn } from "node:child_process";
import { readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { expect, onTestFinished, test } from "vitest";
import { EscrowScheme } from "../../../packages/escrow/src/index.ts";
import { freePort } from "../../../scripts/embedded/ports.ts";
import { newBuyer, startSaleScene } from "../../support/escrow/sale.ts";
import { folderForFile } from "../../support/for-file.ts";
import { installEscrowPackage, linkOwn } from "../../support/packages/registry.ts";
import { send } from "../../support/payments/requests.ts";
import { bareEnvironment } from "../../support/service/environment.ts";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const NAME = "agent-payment-trust-escrow";
const call = promisify(execFile);

/** A folder outside the project with the packed package and its peer dependency viem. */
const home = await folderForFile("escrow-package-");
const installed = await installEscrowPackage(home);

const node = (script: string) => call(process.execPath, ["--input-type=module", "-e", script], { cwd: home });

test("The tarball is JavaScript with declarations and depends only on viem, and on hono for its types", async () => {
  const files = (await readdir(installed, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile());
  const names = files.map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(["index.js", "index.d.ts", "cli.js"]));
  expect(names.filter((name) => !/\.(js|d\.ts)$/.test(name)).sort()).toEqual(["LICENSE", "README.md", "package.json"]);
  const manifest = JSON.parse(await readFile(join(installed, "package.json"), "utf8"));
  expect(manifest.dependencies).toBeUndefined();
  expect(Object.keys(manifest.peerDependencies).sort()).toEqual(["hono", "viem"]);
  expect(manifest.peerDependenciesMeta).toEqual({ hono: { optional: true } });
});

test("It works in an empty folder without hono: a buyer signs, and a merchant's middleware is created", async () => {
  const { stdout } = await node(`
    import { EscrowScheme, escrowed, requirements } from "${NAME}";
    import { privateKeyToAccount } from "viem/accounts";
    const account = privateKeyToAccount("0x" + "42".repeat(32));
    const address = "0x00000000000000000000000000000000c0ffee01";
    const usdc = { address, name: "USD Coin", version: "2" };
    const roles = { address, custody: address, collector: address, feeReceiver: address };
    const escrow = { scheme: "commerce", chainId: 8453, ...roles, usdc, deliveryDomain: { name: "", version: "" } };
    const offered = requirements({ escrow, merchant: address, price: 100000n }, Date.now());
    const { payload } = await new EscrowScheme(account).createPaymentPayload(2, offered);
    const middleware = escrowed({ account, rpcUrl: "http://127.0.0.1:9", price: "0.10", arbiterUrl: "http://127.0.0.1:9" });
    console.log(payload.signature.length, payload.paymentInfo.maxAmount, typeof middleware);
  `);
  expect(stdout).toBe("132 100000 function\n");
});

test("Its command runs in that folder", async () => {
  const { bin } = JSON.parse(await readFile(join(installed, "package.json"), "utf8"));
  const cli = join(installed, bin);
  expect(await readFile(cli, "utf8")).toMatch(/^#!\/usr\/bin\/env node\n/);
  expect((await call(process.execPath, [cli, "--help"], { cwd: home })).stdout).toMatch(/refund <payment id/);
  await expect(call(process.execPath, [cli, "refund"], { cwd: home })).rejects.toMatchObject({ code: 2 });
});

test("A TypeScript program finds its types, and the stock client accepts the scheme", async () => {
  await linkOwn(home, "hono");
  await symlink(join(ROOT, "node_modules/@x402"), join(home, "node_modules/@x402"));
  await symlink(join(ROOT, "node_modules/@types"), join(home, "node_modules/@types"));
  const program = (price: string) => `import { x402Client } from "@x402/fetch";
import { EscrowScheme, escrowed } from "${NAME}";
import { Hono } from "hono";
import { privateKeyToAccount } from "viem/accounts";
const account = privateKeyToAccount("0x42");
export const client = new x402Client().register("eip155:*", new EscrowScheme(account, { maxAmount: "0.10" }));
const sold = escrowed({ account, rpcUrl: "", arbiterUrl: "", price: ${price} }, (c) => c.json({ path: c.req.path }));
export const app = new Hono().post("/haiku", sold);\n`;
  const options = [
    "--noEmit",
    "--strict",
    "--skipLibCheck",
    "--module",
    "nodenext",
    "--target",
    "es2024",
    "--types",
    "node",
  ];
  const check = async (name: string, price: string) => {
    await writeFile(join(home, name), program(price));
    return call(join(ROOT, "node_modules/.bin/tsc"), [...options, name], { cwd: home });
  };
  await check("good.ts", '"0.10"');
  await expect(check("bad.ts", "0.1")).rejects.toMatchObject({
    stdout: expect.stringMatching(/'number' is not assignable to type 'string \| bigint'/),
  });
}, 60_000);

test("The snippet that GET /escrow publishes is a working shop", { timeout: 90_000 }, async () => {
  const scene = await startSaleScene();
  onTestFinished(scene.stop);
  await linkOwn(home, "@hono/node-server");
  const { integration } = (await send(`${scene.service.url}/escrow`)).body as { integration: { snippet: string } };
  await writeFile(join(home, "merchant.js"), integration.snippet);
  const [key, port] = [generatePrivateKey(), await freePort()];
  const merchant = privateKeyToAccount(key).address;
  await scene.chain.setBalance(merchant, 10n ** 18n);
  const shop = spawn(process.execPath, ["merchant.js"], {
    cwd: home,
    env: { ...bareEnvironment(), MERCHANT_PRIVATE_KEY: key, BASE_RPC_URL: scene.chain.rpcUrl, PORT: String(port) },
    stdio: ["ignore", "inherit", "inherit"],
  });
  onTestFinished(() => void shop.kill());
  const url = `http://localhost:${port}/haiku`;
  await expect
    .poll(
      () =>
        fetch(url, { method: "POST" }).then(
          ({ status }) => status,
          () => 0,
        ),
      { timeout: 20_000 },
    )
    .toBe(402);
  const client = new x402Client().register("eip155:*", new EscrowScheme(await newBuyer(scene.chain)));
  const bought = await wrapFetchWithPayment(fetch, client)(url, { method: "POST" });
  expect([bought.status, await bought.json()]).toEqual([200, { haiku: "An old silent pond" }]);
  expect(bought.headers.get("x-escrow-decision")).toBe("release");
  await expect.poll(() => scene.chain.usdcBalance(merchant), { timeout: 20_000 }).toBe(99_000n);
});
