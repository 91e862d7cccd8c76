import type { Page } from "playwright-core";
import { getAddress, type LocalAccount } from "viem";
import { expect, test } from "vitest";
import { formatUsd } from "../../api/platform/money.ts";
import { findings, inLine, launchBrowser, picture } from "../support/browser/browser.ts";
import { startTestChain } from "../support/chain/chain.ts";
import { forFile } from "../support/for-file.ts";
import { settlements } from "../support/payments/on-chain.ts";
import { PRICES } from "../support/payments/prices.ts";
import { newPayer } from "../support/payments/signing.ts";
import { PAY_TO } from "../support/service/environment.ts";
import { startService } from "../support/service/service.ts";

const BASIC = formatUsd(PRICES.basic);

const [chain, browser] = await Promise.all([forFile(startTestChain()), forFile(launchBrowser())]);
const service = await forFile(startService({ chain }));

const DAY_MS = 86_400_000;

interface Asked {
  readonly method: string;
  readonly params?: readonly unknown[];
}

/** A browser wallet with one account. It knows some chains and rejects the methods in `refuses`. */
interface WalletPlan {
  readonly account: LocalAccount;
  readonly announces?: boolean;
  readonly chainId?: number;
  readonly knows?: readonly number[];
  /** Error codes by method. */
  readonly refuses?: Readonly<Record<string, number>>;
  /** The error of the browser's clock, in milliseconds. */
  readonly clockMs?: number;
  /** Runs before each signature. */
  readonly beforeSigning?: (page: Page) => Promise<unknown>;
}

type Typed = Parameters<LocalAccount["signTypedData"]>[0];

/** Opens `/pay` in a browser with this wallet. `asked` lists the methods that the page called. */
async function openWith(plan: WalletPlan) {
  const { account, announces = true, chainId = 8453, knows = [1, 8453], refuses = {}, clockMs } = plan;
  const windows: number[] = [];
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, baseURL: service.url });
  const asked: string[] = [];
  const known = [...knows];
  let current = chainId;
  const chainOf = (params: readonly unknown[]) => Number((params[0] as { chainId: string }).chainId);
  const answer = async ({
    method,
    params = [],
  }: Asked): Promise<{ result: unknown } | { code: number; message: string }> => {
    asked.push(method);
    const code = refuses[method];
    if (code !== undefined) return { code, message: `refused ${method}` };
    switch (method) {
      case "eth_requestAccounts":
        return { result: [account.address] };
      case "eth_chainId":
        return { result: `0x${current.toString(16)}` };
      case "wallet_switchEthereumChain":
        if (!known.includes(chainOf(params))) return { code: 4902, message: "unknown chain" };
        current = chainOf(params);
        return { result: null };
      case "wallet_addEthereumChain":
        known.push(chainOf(params));
        return { result: null };
      case "eth_signTypedData_v4":
        return { result: await signed(JSON.parse(String(params[1])) as Typed) };
      default:
        return { code: -32601, message: `no method ${method}` };
    }
  };
  const signed = async (typed: Typed) => {
    windows.push(Number((typed.message as { validBefore: string }).validBefore) - Date.now() / 1000);
    await plan.beforeSigning?.(page);
    return account.signTypedData(typed);
  };
  await context.exposeFunction("askWallet", answer);
  await context.addInitScript(
    `const provider = { async request(asked) {
      const answer = await window.askWallet(asked);
      if ("code" in answer) throw Object.assign(new Error(answer.message), { code: answer.code });
      return answer.result;
    } };
    if (${announces}) addEventListener("eip6963:requestProvider", () => dispatchEvent(new CustomEvent("eip6963:announceProvider",
      { detail: Object.freeze({ info: { uuid: "1", name: "Test Wallet", icon: "data:,", rdns: "test.wallet" }, provider }) })));
    else window.ethereum = provider;`,
  );
  const page = await context.newPage();
  if (clockMs !== undefined) await page.clock.install({ time: Date.now() + clockMs });
  const troubles: string[] = [];
  page.on("pageerror", (error) => troubles.push(String(error)));
  page.on("console", (message) => {
    // The page requests the 402, which has the terms.
    if (message.type() === "error" && !/status of (402|503)/.test(message.text())) troubles.push(message.text());
  });
  await page.goto("/pay");
  return {
    page,
    asked,
    windows,
    troubles,
    pay: () => page.getByRole("button", { name: `Pay ${BASIC} USDC with` }).click(),
  };
}

const expectMessage = (page: Page) => expect.poll(() => page.locator("#progress").textContent(), { timeout: 15_000 });

test("A wallet pays for real, and the page shows the certificate", async () => {
  const account = await newPayer(chain);
  const { page, asked, troubles, pay } = await openWith({ account });
  await page.getByRole("button", { name: `Pay ${BASIC} USDC with Test Wallet` }).waitFor();
  expect(await page.locator("#none").isVisible()).toBe(false);
  await pay();
  await expectMessage(page).toBe("Paid and certified: Conformant.");
  expect(asked).toEqual(["eth_requestAccounts", "eth_chainId", "eth_signTypedData_v4"]);
  expect(await settlements(chain, account.address)).toMatchObject([{ value: PRICES.basic }]);
  expect(await page.getByRole("button", { name: /^Pay/ }).isVisible()).toBe(false);
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    expect((await findings(page, colorScheme)).map(inLine)).toEqual([]);
    await picture(page, `pay-done-desk-${colorScheme}`);
  }
  expect(await page.locator("#cert-markdown").textContent()).toContain(`${service.url}/badge/`);
  await expect.poll(() => page.evaluate("document.getElementById('cert-badge').naturalWidth")).toBeGreaterThan(80);
  await page.getByRole("link", { name: "See your certificate" }).click();
  await page.waitForURL("**/cert/*");
  expect(await page.getByRole("heading", { level: 1 }).textContent()).toContain("Passed: Conformant");
  expect(await page.locator("main").textContent()).toContain(account.address.toLowerCase());
  expect(troubles).toEqual([]);
  await page.context().close();
});

test("A wallet without EIP-6963 that does not know the network is found, gets the network added, and pays", async () => {
  const account = await newPayer(chain);
  const { page, asked, pay } = await openWith({ account, announces: false, chainId: 1, knows: [1] });
  await page.getByRole("button", { name: "with this browser’s wallet" }).waitFor();
  await pay();
  await expectMessage(page).toBe("Paid and certified: Conformant.");
  expect(asked.filter((method) => method.startsWith("wallet_"))).toEqual([
    "wallet_switchEthereumChain",
    "wallet_addEthereumChain",
    "wallet_switchEthereumChain",
  ]);
  await page.context().close();
});

test.for([
  ["eth_requestAccounts", 4001, "You declined in your wallet. Nothing was signed or paid."],
  ["eth_signTypedData_v4", 4001, "You declined in your wallet. Nothing was signed or paid."],
  ["eth_requestAccounts", -32002, "Your wallet has a pending request. Open it, respond, then try again."],
  ["eth_signTypedData_v4", -32603, "Wallet error: refused eth_signTypedData_v4. Nothing was paid."],
] as const)("If %s fails with %s, the page explains it, and the person can retry", async ([method, code, words]) => {
  const account = await newPayer(chain);
  const { page, pay } = await openWith({ account, refuses: { [method]: code } });
  await pay();
  await expectMessage(page).toBe(words);
  expect(await page.getByRole("button", { name: /^Pay/ }).isEnabled()).toBe(true);
  expect(await settlements(chain, account.address)).toEqual([]);
  await page.context().close();
});

test.for([-DAY_MS, DAY_MS])(
  "The payment window is ten minutes of server time even if the clock is off by %i ms",
  async (clockMs) => {
    const account = await newPayer(chain);
    const { page, windows, pay } = await openWith({ account, clockMs });
    await pay();
    await expectMessage(page).toBe("Paid and certified: Conformant.");
    expect(windows).toEqual([expect.closeTo(600, -1)]);
    expect(await page.locator("main").textContent()).toContain("ten minutes, once");
    await page.context().close();
  },
);

test("If signing on a hardware wallet outlasts the window, the page asks for one new signature and one payment is made", async () => {
  const account = await newPayer(chain);
  let signatures = 0;
  const beforeSigning = async (page: Page) => {
    signatures += 1;
    if (signatures === 1) await page.clock.fastForward("10:30");
    else
      await expectMessage(page).toMatch(
        /^That took longer than ten minutes, so the payment expired and was not sent\. Sign it again: 0\.25/,
      );
  };
  const { page, asked, windows, pay } = await openWith({ account, clockMs: 0, beforeSigning });
  await pay();
  await expectMessage(page).toBe("Paid and certified: Conformant.");
  expect(asked.filter((method) => method === "eth_signTypedData_v4")).toHaveLength(2);
  expect(windows).toEqual([expect.closeTo(600, -1), expect.closeTo(600, -1)]);
  expect(await settlements(chain, account.address)).toMatchObject([{ value: PRICES.basic }]);
  await page.context().close();
});

test("After three signatures that outlast the window, the page stops asking, and nothing is paid", async () => {
  const account = await newPayer(chain);
  const beforeSigning = (page: Page) => page.clock.fastForward("10:30");
  const { page, windows, pay } = await openWith({ account, clockMs: 0, beforeSigning });
  await pay();
  await expectMessage(page).toBe(
    "The payment expired before it was sent. Nothing was paid. Sign it within ten minutes.",
  );
  expect(windows).toHaveLength(3);
  expect(await settlements(chain, account.address)).toEqual([]);
  await page.context().close();
});

test("Without funds, the page shows that nothing was charged", async () => {
  const account = await newPayer(chain, 0n);
  const { page, pay } = await openWith({ account });
  await pay();
  await expectMessage(page).toMatch(/^Payment rejected, nothing was charged: .*(funds|balance)/i);
  expect(await page.locator("#result").isVisible()).toBe(false);
  await page.context().close();
});

test("A pending payment is sent again without a new signature", async () => {
  const account = await newPayer(chain);
  const { page, asked, pay } = await openWith({ account });
  const sent: (string | undefined)[] = [];
  await page.route("**/test/basic", async (route) => {
    const signature = route.request().headers()["payment-signature"];
    if (signature === undefined) return route.continue();
    sent.push(signature);
    if (sent.length === 1) return route.abort();
    if (sent.length === 2) return route.fulfill({ status: 503, json: { code: "payment_pending" } });
    return route.continue();
  });
  await pay();
  await expectMessage(page).toBe("Paid and certified: Conformant.");
  expect(sent).toHaveLength(3);
  expect(new Set(sent).size).toBe(1);
  expect(asked.filter((method) => method === "eth_signTypedData_v4")).toHaveLength(1);
  expect(await settlements(chain, account.address)).toHaveLength(1);
  await page.context().close();
});

const THIEF = "0x000000000000000000000000000000000000dEaD";

/** Changes the terms in the 402 on its way to the page. `change` gets the header and returns another one. */
const underway = (page: Page, change: (header: string) => string) =>
  page.route("**/test/basic", async (route) => {
    const answer = await route.fetch();
    const header = change(answer.headers()["payment-required"] ?? "");
    return route.fulfill({ status: 402, headers: { "payment-required": header } });
  });

const offering = (change: object) => (header: string) => {
  const terms = JSON.parse(Buffer.from(header, "base64").toString());
  const changed = { ...terms, accepts: terms.accepts.map((one: object) => ({ ...one, ...change })) };
  return Buffer.from(JSON.stringify(changed)).toString("base64");
};

test.for([
  ["a higher price", { amount: "50000000" }, `amount 50000000 instead of ${PRICES.basic}`],
  ["a lower price", { amount: "1" }, `amount 1 instead of ${PRICES.basic}`],
  ["another receiver", { payTo: THIEF }, `recipient ${THIEF} instead of ${getAddress(PAY_TO)}`],
  ["another token", { asset: THIEF }, `token ${THIEF} instead of 0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913`],
  ["another network", { network: "eip155:1" }, "network eip155:1 instead of eip155:8453"],
  ["a year to settle", { maxTimeoutSeconds: 31_536_000 }, "timeout 31536000 instead of 120"],
  ["another scheme", { scheme: "upto" }, "no scheme exact"],
] as const)("Terms with %s are not signed if the page was served with different ones", async ([, change, detail]) => {
  const { page, asked, pay } = await openWith({ account: await newPayer(chain) });
  await underway(page, offering(change));
  await pay();
  await expectMessage(page).toBe(
    `The terms differ from those on this page: ${detail}. Nothing was signed. Reload the page; if this message comes back, do not pay here.`,
  );
  expect(asked).toEqual([]);
  await page.context().close();
});

test.for([
  ["invalid base64", "%"],
  ["no list of offers", Buffer.from('{"accepts":null}').toString("base64")],
] as const)("Terms with %s are not signed", async ([, header]) => {
  const { page, asked, pay } = await openWith({ account: await newPayer(chain) });
  await underway(page, () => header);
  await pay();
  await expectMessage(page).toBe("The service’s terms cannot be read. Nothing was signed.");
  expect(asked).toEqual([]);
  await page.context().close();
});
