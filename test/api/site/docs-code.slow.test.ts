import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { generatePrivateKey, privateKeyToAccount, privateKeyToAddress } from "viem/accounts";
import { expect, onTestFinished, test } from "vitest";
import { WINDOW_SECONDS } from "../../../api/certificates/kinds/retry.ts";
import { BAITED_PRODUCTS } from "../../../api/certificates/products.ts";
import { connect } from "../../../api/platform/db/connection.ts";
import { createActivityIndex } from "../../../api/platform/index/activity.ts";
import { DOCS_PAGES } from "../../../api/site/docs-pages.ts";
import { installedAsPrinted } from "../../support/browser/installed-as-printed.ts";
import {
  type CodeOfPage,
  codeOn,
  inShell,
  type PageCode,
  type Printed,
  type Reader,
  runAsPrinted,
  save,
  serveAsPrinted,
} from "../../support/browser/page-code.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { deployEscrow, deployOperator } from "../../support/escrow/contract.ts";
import { folderForFile, forFile } from "../../support/for-file.ts";
import { launchIndexerOf } from "../../support/indexer/launched.ts";
import { startRegistry } from "../../support/packages/registry.ts";
import { pipEnvironment } from "../../support/packages/wheels.ts";
import { EXAM_KEY, lineFor } from "../../support/sellers/buying.ts";
import { openShop } from "../../support/sellers/shop.ts";
import { freshDatabase } from "../../support/service/database.ts";
import { startService } from "../../support/service/service.ts";
import { waitUntil } from "../../support/wait-until.ts";

// Takes the documentation's programs from their pages and runs them as a reader would: with the commands printed below
// each, in an empty folder, against the real service and its index.

const pip = await pipEnvironment();
const registry = await forFile(startRegistry());
const chain = await forFile(startTestChain({ mining: { everySeconds: 1 } }));
const [escrow, operator] = [await deployEscrow(chain), await deployOperator(chain)];
/** One per exam, because exams of one seller must be ten minutes apart. */
const sellers = {
  local: await forFile(openShop(chain)),
  exam: await forFile(openShop(chain)),
  "exam-py": await forFile(openShop(chain)),
};
const database = await freshDatabase();
await forFile(launchIndexerOf({ chain, database, escrows: [escrow] }));
let aheadMs = 0;
const service = await forFile(
  startService({
    chain,
    database,
    now: () => new Date(Date.now() + aheadMs),
    config: {
      escrowAddresses: [escrow.address, operator.address],
      exams: { key: EXAM_KEY, daily: 20_000_000n },
      arbiterAllowedOrigins: Object.values(sellers).map(({ url }) => url),
    },
  }),
);
await chain.fund(privateKeyToAccount(EXAM_KEY).address, 20_000_000n);

const pages = new Map<string, CodeOfPage>(
  await Promise.all(DOCS_PAGES.map(async ({ path }) => [path, await codeOn(service.url + path)] as const)),
);
/** All code blocks of the documentation, without the integrations page, which has its own test. */
const blocks = new Map([...pages].flatMap(([path, { blocks: own }]) => (path === "/integrations" ? [] : [...own])));
function block(id: string): PageCode {
  const one = blocks.get(id);
  if (one === undefined) throw new Error(`The documentation has no code ${id}.`);
  return one;
}

/** A funded payer, under the name that the pages use. */
async function newPayer(): Promise<{ readonly PAYER_PRIVATE_KEY: `0x${string}` }> {
  const PAYER_PRIVATE_KEY = generatePrivateKey();
  await chain.fund(privateKeyToAccount(PAYER_PRIVATE_KEY).address, 10_000_000n);
  return { PAYER_PRIVATE_KEY };
}

const cache = await folderForFile("docs-cache-");
const env: Reader["env"] = { ...pip, ...registry.environment(cache) };
const readyFor = installedAsPrinted(env);
const newFolder = async (): Promise<Reader> => ({ home: await folderForFile("docs-code-"), env });

/** Runs commands that use the packages they install, and files that `prepare` puts there. */
async function inReadyFolder(commands: PageCode, prepare: (reader: Reader) => unknown = () => {}): Promise<string> {
  const ready = await readyFor(commands);
  await prepare(ready.reader);
  return inShell(ready.reader, ready.commands);
}

async function ran(id: string, values: Printed["values"] = {}, added: Reader["env"] = {}): Promise<string> {
  const { reader, commands } = await readyFor(block(`${id}-run`));
  return runAsPrinted({ ...reader, env: { ...reader.env, ...added } }, { code: block(id), commands, values });
}

async function served(id: string, values: NonNullable<Printed["values"]>): Promise<string> {
  const { reader, commands } = await readyFor(block(`${id}-run`));
  return serveAsPrinted(reader, { code: block(id), commands, values });
}

/** The result of the payer's newest session of a test. */
async function resultOf(product: string, key: `0x${string}`): Promise<{ readonly message?: string }> {
  const body = JSON.stringify({ wallet: privateKeyToAccount(key).address });
  const headers = { "content-type": "application/json" };
  const answer = await fetch(`${service.url}/test/${product}/result`, { method: "POST", headers, body });
  return (await answer.json()) as { readonly message?: string };
}

/** Matches JavaScript output, and Python output with its `True` and single quotes. */
const PASSED = /status'?: 'complete'.*verdict'?: 'pass'/s;

async function baited(id: string): Promise<void> {
  const output = await ran(id, await newPayer());
  expect(output).toMatch(/^[12] paid 200$/m);
  expect(output).toMatch(/^[12] refused: /m);
  expect(output).toMatch(PASSED);
}

async function retried(id: string): Promise<void> {
  const payer = await newPayer();
  const running = ran(id, payer);
  // The test's clock passes the lost order's window once the same payment has been sent again.
  const isOnlyLate = async () =>
    /the window of the lost order ends/.test(`${(await resultOf("retry", payer.PAYER_PRIVATE_KEY)).message}`);
  expect(await Promise.race([waitUntil(isOnlyLate, 240_000), running.then(() => false)])).toBe(true);
  aheadMs = (WINDOW_SECONDS + 5) * 1000;
  onTestFinished(() => {
    aheadMs = 0;
  });
  expect(await running).toMatch(PASSED);
}

const sold = (shop: string, buyer: string, expected: RegExp): Promise<void> =>
  soldAt(buyer, expected, (values) => served(shop, values));

/** Expects a merchant's shop to return a 402 to an unpaid request and to sell to a buyer's program. */
async function soldAt(
  buyer: string,
  expected: RegExp,
  serve: (values: Readonly<Record<string, string>>) => Promise<string>,
): Promise<void> {
  const merchant = generatePrivateKey();
  await chain.setBalance(privateKeyToAccount(merchant).address, 10n ** 18n);
  const origin = await serve({ MERCHANT_PRIVATE_KEY: merchant, BASE_RPC_URL: chain.rpcUrl });
  expect((await fetch(`${origin}/haiku`, { method: "POST" })).status).toBe(402);
  expect(await ran(buyer, await newPayer(), { SHOP_URL: `${origin}/haiku` })).toMatch(expected);
}

async function scored(id: string): Promise<string> {
  const pool = connect(service.config.databaseUrl, 1);
  const { position } = createActivityIndex(pool, { viewsSchema: "live" });
  const isThere = await waitUntil(async () => (await position()) !== null, 60_000);
  await pool.end();
  expect(isThere).toBe(true);
  const output = await ran(id, await newPayer());
  expect(output.match(/^0x[0-9a-f]{40} \d+ /gm)).toHaveLength(2);
  return output;
}

async function examined(id: "exam" | "exam-py"): Promise<void> {
  const payer = await newPayer();
  const url = `${sellers[id].url}/haiku`;
  sellers[id].place(await lineFor(service.url, url, privateKeyToAccount(payer.PAYER_PRIVATE_KEY)));
  expect(await ran(id, { ...payer, SELLER_URL: url })).toMatch(/^complete full\n.*\/cert\/[0-9a-f]{32}\n$/ms);
}

/** Buys a certificate and returns its ID once it is in the log. */
async function certified(): Promise<string> {
  const [, id = ""] = /\/cert\/([0-9a-f]+)/.exec(await ran("pay", await newPayer())) ?? [];
  const isLogged = async () => (await fetch(`${service.url}/cert/${id}.tlog-proof`)).status === 200;
  expect(await waitUntil(isLogged, 60_000)).toBe(true);
  return id;
}

const RELEASED_PY = /\{'haiku': 'An old silent pond'\} release\n$/;
const RELEASED = /^\{ haiku: 'An old silent pond' \} release\n$/m;

/** Runs the exam on the reader's machine, on a route that sells by GET. */
async function checked(url: string): Promise<string> {
  const { PAYER_PRIVATE_KEY: key } = await newPayer();
  const { text, ...rest } = block("seller-check");
  const asked = text
    .replace("PRIVATE_KEY=0x…", `PRIVATE_KEY=${key}`)
    .replace("http://localhost:3000/haiku --method POST", url)
    .replace("http://127.0.0.1:8545", chain.rpcUrl);
  return inShell(await newFolder(), { ...rest, text: asked });
}

const UNTESTED = /^valid, not verified: never tested\n/m;

/** The output of the programs in each language. Code blocks in Python have the suffix `-py`. */
const LANGUAGES = {
  "": {
    members: (name: string) => `${name}: `,
    settled: /^(settled|pending) (true|false) (0x[0-9a-f]{64}|undefined)\n\w/m,
  },
  "-py": {
    members: (name: string) => `'${name}': `,
    settled: /^(settled|pending) (True|False) (0x[0-9a-f]{64}|None)\n\w/m,
  },
} as const;

type Suffix = keyof typeof LANGUAGES;
type Runs = Readonly<Record<string, () => Promise<void>>>;

/** The programs that the documentation has in both languages, keyed by the blocks that each run covers. */
function runsIn(suffix: Suffix): Runs {
  const { members, settled } = LANGUAGES[suffix];
  const passed = `${members("verdict")}'pass'`;
  const runs: Runs = {
    pay: async () => {
      const output = await ran(`pay${suffix}`, await newPayer());
      expect(output).toContain(`${members("cert_url")}'${service.url}/cert/`);
      expect(output).toContain(passed);
    },
    ...Object.fromEntries(
      BAITED_PRODUCTS.map((product) => [`${product}-test`, () => baited(`${product}-test${suffix}`)]),
    ),
    "retry-test": () => retried(`retry-test${suffix}`),
    settled: async () => expect(await ran(`settled${suffix}`, await newPayer())).toMatch(settled),
    purchases: async () => {
      const payer = await newPayer();
      await ran(`pay${suffix}`, payer);
      const output = await ran(`purchases${suffix}`, payer);
      expect(output).toMatch(/\/test\/basic 0\.25 USDC 0x[0-9a-f]{64}\n/);
      expect(output).toContain(passed);
    },
    "check-credential": async () => expect(await inReadyFolder(block(`check-credential${suffix}`))).toMatch(UNTESTED),
    check: async () => expect(await ran(`check${suffix}`)).toContain("not verified: never tested"),
    exam: () => examined(`exam${suffix}`),
    "verdict check-verdict": async () => {
      expect(await ran(`verdict${suffix}`, await newPayer())).toMatch(/^release\n$/m);
      const { home } = (await readyFor(block(`verdict${suffix}-run`))).reader;
      const verdict = await readFile(join(home, "verdict.json"), "utf8");
      const saved = (reader: Reader) => save(reader, { id: "verdict", caption: "verdict.json", text: verdict });
      expect(await inReadyFolder(block(`check-verdict${suffix}`), saved)).toMatch(/^valid\n/m);
      const { verdict_url: page } = JSON.parse(verdict);
      expect(await inShell(await newFolder(), (await codeOn(page)).block("verify"))).toMatch(/^valid\n/m);
    },
  };
  return Object.fromEntries(Object.entries(runs).map(([ids, run]) => [ids.replaceAll(/(?=$| )/g, suffix), run]));
}

/** Checks a certificate's proof in a folder with the log's policy. */
async function logged(id: "log-check" | "log-check-py"): Promise<Reader> {
  const certificate = await certified();
  const { text, ...rest } = block(id);
  const check = { ...rest, text: text.replaceAll("0123456789abcdef", certificate) };
  const { reader, commands } = await readyFor(check);
  await inShell(reader, block("log-policy"));
  expect(await inShell(reader, commands)).toMatch(/in the log|entry \d+/i);
  return reader;
}

/** Installs packages as printed, and returns the output of a command in that folder. */
const afterInstalling = (id: string, command: string): Promise<string> =>
  inReadyFolder({ ...block(id), text: `${block(id).text}\n${command}` });

const NODE_RUNS: Runs = {
  ...runsIn(""),
  "see-terms": () => asksForTerms(block("see-terms")),
  "verify-wallet": async () => {
    const output = JSON.parse(await inShell(await newFolder(), block("verify-wallet")));
    expect(output).toMatchObject({ verified: false });
  },
  "shop buyer": () => sold("shop", "buyer", RELEASED),
  "shop-express": () => sold("shop-express", "buyer", RELEASED),
  "local-facilitator passing-shop": async () => {
    const FACILITATOR_PRIVATE_KEY = generatePrivateKey();
    await chain.setBalance(privateKeyToAccount(FACILITATOR_PRIVATE_KEY).address, 10n ** 18n);
    const { reader, commands } = await readyFor(block("local-facilitator-run"));
    const text = commands.text.replace("http://127.0.0.1:8545", chain.rpcUrl);
    const FACILITATOR_URL = await serveAsPrinted(reader, {
      code: block("local-facilitator"),
      commands: { ...commands, text },
      values: { FACILITATOR_PRIVATE_KEY },
    });
    const origin = await served("passing-shop", {
      FACILITATOR_URL,
      PAY_TO: privateKeyToAddress(generatePrivateKey()),
    });
    expect(await checked(`${origin}/haiku`)).toMatch(/^Level full\./m);
  },
  "seller-check": async () => {
    expect(await checked(`${sellers.local.url}/haiku`)).toMatch(/^Level full\./m);
  },
  scores: async () => {
    expect((await scored("scores")).match(/^recomputed on this machine: same$/gm)).toHaveLength(2);
  },
  "verdict-contract": async () => {
    const library = await readFile(new URL("../../../contracts/VerdictLib.sol", import.meta.url), "utf8");
    const errors = compile({ "Deal.sol": block("verdict-contract").text, "VerdictLib.sol": library });
    expect(errors).toEqual([]);
  },
  "log-policy log-check log-follow": async () => {
    expect(await inShell(await logged("log-check"), block("log-follow"))).toMatch(/\d/);
  },
  "install-packages": async () => {
    const help = "npx --no-install agent-payment-trust-mcp --help 2>&1";
    expect(await afterInstalling("install-packages", help)).toMatch(/^The tools of an Agent Payment Trust Service/m);
  },
};

const PYTHON_RUNS: Runs = {
  ...runsIn("-py"),
  "shop-py buyer-py": () => sold("shop-py", "buyer-py", RELEASED_PY),
  "shop-flask": () => sold("shop-flask", "buyer-py", RELEASED_PY),
  "scores-py": () => scored("scores-py").then(() => undefined),
  "log-check-py": () => logged("log-check-py").then(() => undefined),
  "install-wheel": async () => {
    const help = "agent-payment-trust --help";
    expect(await afterInstalling("install-wheel", help)).toMatch(/credential/);
  },
};

/** Code with its own tests: the gate's shops on the integrations page, the Next shops, and the whole service. */
const ELSEWHERE = [/^(hono|express|next|fastapi|flask|shop-next)(-run)?$/, /^local-start$/];

/** Returns the compiler's errors. */
function compile(files: Readonly<Record<string, string>>): readonly string[] {
  const solc = createRequire(import.meta.url)("solc") as { compile: (input: string) => string };
  const sources = Object.fromEntries(Object.entries(files).map(([name, content]) => [name, { content }]));
  const settings = { outputSelection: { "*": { "*": ["evm.bytecode"] } } };
  const { errors = [], contracts } = JSON.parse(
    solc.compile(JSON.stringify({ language: "Solidity", sources, settings })),
  );
  expect(contracts["Deal.sol"].Deal.evm.bytecode.object).toMatch(/^[0-9a-f]{100}/);
  return errors.map(({ formattedMessage }: { formattedMessage: string }) => formattedMessage);
}

test("All code of the documentation is run here or by the tests of integrations and Next", () => {
  const own = [...blocks.keys()].filter((id) => !ELSEWHERE.some((pattern) => pattern.test(id)));
  const run = Object.keys({ ...NODE_RUNS, ...PYTHON_RUNS }).flatMap((ids) => ids.split(" "));
  expect(own.map((id) => id.replace(/-run$/, "")).filter((id) => !run.includes(id))).toEqual([]);
  expect(run.filter((id) => !own.includes(id))).toEqual([]);
  expect(new Set(run).size).toBe(run.length);
});

/** Pages outside the documentation that have code. Each block is run here or equals a block of the documentation. */
const OTHER_PAGES: Readonly<Record<string, Readonly<Record<string, (code: PageCode) => Promise<void> | void>>>> = {
  "/": { ask: asksForTerms, "pay-code": sameAs("pay"), "pay-code-run": sameAs("pay-run") },
  "/cafe": { order: asksForTerms },
  "/escrow": { snippet: sameAs("shop") },
  "/escrow/demo": { ask: asksForTerms },
  "/log": {
    policy: () => undefined,
    checkpoint: () => undefined,
    check: sameAs("log-check"),
    follow: ({ text }) => expect(block("log-follow").text).toBe(`${text} --state log.json --once`),
  },
  "/test/seller": {
    rehearse: async ({ text }) => {
      const { rehearsal } = (await (await fetch(`${service.url}/test/seller`)).json()) as {
        rehearsal: { command: string };
      };
      expect(text).toBe(rehearsal.command);
    },
  },
  "/arbiter": {
    claim: async ({ text: body }) => {
      const headers = { "content-type": "application/json" };
      const unpaid = await fetch(`${service.url}/arbiter/verify`, { method: "POST", headers, body });
      expect([body, unpaid.status]).toEqual([body, 402]);
    },
  },
  "/pay": { "cert-markdown": ({ text }) => expect(text).toBe("") },
};

async function asksForTerms(code: PageCode): Promise<void> {
  expect(await inShell(await newFolder(), code)).toMatch(/^HTTP\/1.1 402 .*payment-required: /is);
}

function sameAs(id: string): (code: PageCode) => void {
  return ({ text }) => expect(text).toBe(block(id).text);
}

test("All code of the other pages equals documentation code or works as described", async () => {
  const sitemap = await (await fetch(`${service.url}/sitemap.xml`)).text();
  const listed = [...sitemap.matchAll(/<loc>([^<]+)<\/loc>/g)].map(([, url = ""]) => new URL(url).pathname);
  for (const path of listed.filter((one) => !pages.has(one))) {
    const code = (await codeOn(service.url + path)).blocks;
    const runs = OTHER_PAGES[path] ?? {};
    expect([path, [...code.keys()].filter((id) => !(id in runs))]).toEqual([path, []]);
    for (const [id, one] of code) await runs[id]?.(one);
  }
  expect(Object.keys(OTHER_PAGES).filter((path) => !listed.includes(path))).toEqual([]);
});

test("The gate's page shows the same code as the integrations page", () => {
  const integrations = pages.get("/integrations")?.blocks;
  for (const [id, { text }] of pages.get("/docs/gate")?.blocks ?? [])
    expect([id, integrations?.get(id)?.text]).toEqual([id, text]);
});

test.for(Object.keys(NODE_RUNS))("The code of %s works as its page describes", { timeout: 300_000 }, async (ids) =>
  NODE_RUNS[ids]?.(),
);

test.skipIf(pip === null).for(Object.keys(PYTHON_RUNS))(
  "The Python code of %s works as its page describes",
  { timeout: 300_000 },
  async (ids) => PYTHON_RUNS[ids]?.(),
);

test("The home page counts the purchases", { timeout: 120_000 }, async () => {
  const read = async (): Promise<Record<string, string>> => {
    const html = await (await fetch(service.url, { headers: { accept: "text/html" } })).text();
    const named = html.matchAll(/<dt>([^<]+)<\/dt><dd>([^<]*)/g);
    return Object.fromEntries([...named].map(([, name = "", value = ""]) => [name, value]));
  };
  // Figures are counted once a minute, and the first request afterwards still gets the old ones.
  const isCounted = async () => Number((await read())["Certified agents"]) > 0;
  expect(await waitUntil(isCounted, 90_000, 1_000)).toBe(true);
  const figures = await read();
  expect(figures["Verdicts signed"]).toMatch(/^[1-9]\d*$/);
  expect(figures["USDC in escrow"]).toMatch(/^\d+\.\d\d/);
});
