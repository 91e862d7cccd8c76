import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { ExactEvmScheme } from "@x402/evm/exact/client";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { generatePrivateKey, privateKeyToAddress } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import { freePort } from "../../../scripts/embedded/ports.ts";
import { inShell, save } from "../../support/browser/page-code.ts";
import { startSaleScene } from "../../support/escrow/sale.ts";
import { folderForFile, forFile } from "../../support/for-file.ts";
import { endOf, pythonServer } from "../../support/packages/python.ts";
import { pipEnvironment } from "../../support/packages/wheels.ts";
import { serveFacilitator } from "../../support/sellers/stock-facilitator.ts";
import { STOCK_CLIENTS } from "../../support/sessions/agents.ts";

// Follows the README in an empty folder against a running service.

const pip = await pipEnvironment();

describe.skipIf(pip === null)("the README of the Python package", async () => {
  if (pip === null) return;
  const scene = await forFile(startSaleScene());
  const { service, chain } = scene;
  const facilitator = await forFile(serveFacilitator(chain));
  const port = await freePort();
  const home = await folderForFile("python-readme-");
  const text = (await readFile(new URL("../../../packages/python/README.md", import.meta.url), "utf8"))
    .replaceAll("http://localhost:4020", service.url)
    .replaceAll("http://127.0.0.1:8545", chain.rpcUrl)
    .replaceAll(/\b3000\b/g, String(port));
  const reader = { home, env: pip };
  const shell = (line: string) => inShell(reader, { id: "command", caption: "command", text: line });
  const indented = [...text.matchAll(/^ {4}(.+)$/gm)].map(([, line = ""]) => line);
  const python = { folder: home, python: join(home, ".venv", "bin", "python") };

  /** The code block after the mention of a file name. */
  const file = async (caption: string) => {
    const [, code = ""] = new RegExp(`\`${caption}\`.*?\\n\`\`\`python\\n(.*?)\`\`\``, "s").exec(text) ?? [];
    return save(reader, { id: caption, caption, text: code });
  };
  const bought = async (key: string) => {
    const { code, stdout, stderr } = await endOf(python.python, [await file("buyer.py")], {
      cwd: home,
      env: { PAYER_PRIVATE_KEY: key },
    });
    expect([code, stderr]).toEqual([0, ""]);
    return stdout;
  };
  await shell(indented.filter((line) => /^(python3 -m venv|pip install)/.test(line)).join("\n"));
  await shell(". .venv/bin/activate && pip install fastapi uvicorn");

  test("The program checks a credential of the service that it was downloaded from", async () => {
    const [check = ""] = indented.filter((line) => /^agent-payment-trust http/.test(line));
    expect(await shell(`. .venv/bin/activate && ${check}`)).toMatch(/^valid, not verified: never tested\n/);
  });

  test("check.py reports why a wallet is not verified, and later that it is", async () => {
    const script = await file("check.py");
    const checked = () => endOf(python.python, [script], { cwd: home, env: {} });
    expect(await checked()).toMatchObject({
      code: 0,
      stdout: "wallet 0x70997970c51812dc3a010c7d01b50e0d17dc79c8 ('not verified: never tested',)\n",
    });
    await STOCK_CLIENTS[0]?.post(`${service.url}/test/basic`, devAccount(1));
    expect(await checked()).toMatchObject({
      code: 0,
      stdout: "wallet 0x70997970c51812dc3a010c7d01b50e0d17dc79c8 is verified\n",
    });
  });

  test.each(["shop.py", "flask_shop.py"])("With %s and buyer.py, the arbiter releases the money", async (name) => {
    const [merchant, payer] = [generatePrivateKey(), generatePrivateKey()];
    if (name === "flask_shop.py") await shell(". .venv/bin/activate && pip install flask");
    await chain.setBalance(privateKeyToAddress(merchant), 10n ** 18n);
    await chain.fund(privateKeyToAddress(payer), 1_000_000n);
    const shop = await pythonServer(python, await file(name), { env: { MERCHANT_PRIVATE_KEY: merchant }, port });
    expect(await bought(payer)).toBe("{'haiku': 'An old silent pond'} release\n");
    await expect.poll(() => chain.usdcBalance(privateKeyToAddress(merchant))).toBe(99_000n);
    await shop.stop();
  });

  test("gated.py sells only to a verified wallet", async () => {
    const env = { FACILITATOR_URL: facilitator.url, PAY_TO: privateKeyToAddress(generatePrivateKey()) };
    const { url, stop } = await pythonServer(python, await file("gated.py"), { env, port });
    expect((await fetch(`${url}/haiku`)).status).toBe(402);
    const get = (ordinal: number) => {
      const client = new x402Client().register("eip155:*", new ExactEvmScheme(devAccount(ordinal)));
      return wrapFetchWithPayment(fetch, client)(`${url}/haiku`);
    };
    expect(await (await get(1)).json()).toEqual({ haiku: "An old silent pond" });
    expect((await get(2)).status).toBe(403);
    await stop();
  });
});
