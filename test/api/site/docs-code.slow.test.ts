import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { WINDOW_SECONDS } from "../../../api/certificates/kinds/retry.ts";
import { connect } from "../../../api/platform/db/connection.ts";
import { createActivityIndex } from "../../../api/platform/index/activity.ts";
import { codeOn, inShell, type Reader, run, serve } from "../../support/browser/page-code.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { deployEscrow, deployOperator } from "../../support/escrow/contract.ts";
import { folderForFile, forFile } from "../../support/for-file.ts";
import { launchIndexerOf } from "../../support/indexer/launched.ts";
import { startRegistry } from "../../support/packages/registry.ts";
import { freshDatabase } from "../../support/service/database.ts";
import { startService } from "../../support/service/service.ts";
import { waitUntil } from "../../support/wait-until.ts";

// The documentation's code, taken from its page and run as a reader would run it, against the real service and its index.

const home = await folderForFile("docs-code-");
const registry = await forFile(startRegistry());
const chain = await forFile(startTestChain({ mining: { everySeconds: 1 } }));
const [escrow, operator] = [await deployEscrow(chain), await deployOperator(chain)];
const database = await freshDatabase();
const _launched = await forFile(launchIndexerOf({ chain, database, escrows: [escrow] }));
let aheadMs = 0;
const service = await forFile(
  startService({
    chain,
    database,
    now: () => new Date(Date.now() + aheadMs),
    config: { escrowAddresses: [escrow.address, operator.address] },
  }),
);
const [payer, merchant] = [generatePrivateKey(), generatePrivateKey()];
await chain.fund(privateKeyToAccount(payer).address, 10_000_000n);
await chain.setBalance(privateKeyToAccount(merchant).address, 10n ** 18n);
const env = { PAYER_PRIVATE_KEY: payer, MERCHANT_PRIVATE_KEY: merchant, BASE_RPC_URL: chain.rpcUrl };
const reader: Reader = { home, env: { ...env, ...registry.environment(home) } };
const { blocks, block } = await codeOn(`${service.url}/docs`);
await inShell(reader, block("install"));

/** Each by the blocks that it runs. */
const RUNS: Readonly<Record<string, () => Promise<void>>> = {
  install: async () => {
    const programs = [...blocks.values()].filter(({ caption }) => caption.endsWith(".mjs"));
    const imported = programs.flatMap(({ text }) =>
      [...text.matchAll(/ from "(@[^/"]+\/[^/"]+|[^@/"]+)/g)].map(([, name]) => name),
    );
    const used = [...new Set(imported)].filter((name) => !name?.startsWith("node:"));
    const { dependencies } = JSON.parse(await readFile(join(reader.home, "package.json"), "utf8"));
    expect(Object.keys(dependencies).sort()).toEqual(used.sort());
    const served = Object.values<string>(dependencies).filter((range) => range.startsWith("file:agent-payment-trust-"));
    expect(served).toHaveLength(2);
  },
  "install-packages": async () => {
    await inShell(reader, block("install-packages"));
    const program = { ...block("install-packages"), text: "npx --no-install agent-payment-trust-mcp --help 2>&1" };
    expect(await inShell(reader, program)).toMatch(/^The tools of an Agent Payment Trust Service/);
  },
  "see-terms": async () => {
    expect(await inShell(reader, block("see-terms"))).toMatch(/^HTTP\/1.1 402 .*payment-required: /is);
  },
  pay: async () => {
    const said = await run(reader, block("pay"));
    expect(said).toContain(`cert_url: '${service.url}/cert/`);
    expect(said).toContain("verdict: 'pass'");
  },
  "scam-test": async () => {
    const said = await run(reader, block("scam-test"));
    expect(said).toMatch(/^[12] paid 200$/m);
    expect(said).toMatch(/^[12] refused: /m);
    expect(said).toMatch(/status: 'complete'.*verdict: 'pass'/s);
  },
  "recipient-test": async () => {
    const said = await run(reader, block("recipient-test"));
    expect(said).toMatch(/^[12] paid 200$/m);
    expect(said).toMatch(/^[12] refused: /m);
    expect(said).toMatch(/status: 'complete'.*verdict: 'pass'/s);
  },
  "retry-test": async () => {
    const running = run(reader, block("retry-test"));
    // The window of the lost order passes on the service's clock once the same payment came again.
    const isOnlyLate = async () => /the window of the lost order ends/.test(`${(await resultOf("retry")).message}`);
    expect(await Promise.race([waitUntil(isOnlyLate, 120_000), running.then(() => false)])).toBe(true);
    aheadMs = (WINDOW_SECONDS + 5) * 1000;
    expect(await running).toMatch(/status: 'complete'.*verdict: 'pass'/s);
    aheadMs = 0;
  },
  "verify-wallet": async () => {
    expect(JSON.parse(await inShell(reader, block("verify-wallet")))).toMatchObject({ verified: false });
  },
  "escrow-merchant escrow-buyer": async () => {
    const shop = await serve(reader, block("escrow-merchant"));
    const buyer = { ...reader, env: { ...reader.env, SHOP_URL: `${shop}/haiku` } };
    expect(await run(buyer, block("escrow-buyer"))).toBe("{ haiku: 'An old silent pond' } release\n");
  },
  "check-credential": async () => {
    expect(await inShell(reader, block("check-credential"))).toMatch(/^valid, not verified: never tested\n/);
  },
  scores: async () => {
    const pool = connect(service.config.databaseUrl, 1);
    const { position } = createActivityIndex(pool, { viewsSchema: "live" });
    const isThere = await waitUntil(async () => (await position()) !== null, 60_000);
    await pool.end();
    expect(isThere).toBe(true);
    const said = await run(reader, block("scores"));
    expect(said.match(/^0x[0-9a-f]{40} \d+ /gm)).toHaveLength(2);
    expect(said.match(/^recomputed on this machine: same$/gm)).toHaveLength(2);
  },
  "verdict check-verdict": async () => {
    expect(await run(reader, block("verdict"))).toBe("release\n");
    expect(await inShell(reader, block("check-verdict"))).toMatch(/^valid\n/);
  },
  "verdict-contract": async () => {
    const library = await readFile(new URL("../../../contracts/VerdictLib.sol", import.meta.url), "utf8");
    const errors = compile({ "Deal.sol": block("verdict-contract").text, "VerdictLib.sol": library });
    expect(errors).toEqual([]);
  },
};

/** What the payer's newest session of a test says of itself. */
async function resultOf(product: string): Promise<{ readonly message?: string }> {
  const body = JSON.stringify({ wallet: privateKeyToAccount(payer).address });
  const headers = { "content-type": "application/json" };
  const answer = await fetch(`${service.url}/test/${product}/result`, { method: "POST", headers, body });
  return (await answer.json()) as { readonly message?: string };
}

/** What the compiler says against the sources. */
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

test("all code on the page is run here", () => {
  expect([...blocks.keys()].sort()).toEqual(
    Object.keys(RUNS)
      .flatMap((ids) => ids.split(" "))
      .sort(),
  );
});

test.for(Object.keys(RUNS))("the code of %s does what the page says", { timeout: 180_000 }, async (ids) =>
  RUNS[ids]?.(),
);

test("the home page counts what was bought", { timeout: 60_000 }, async () => {
  await run(reader, block("pay"));
  await run(reader, block("verdict"));
  const html = await (await fetch(service.url, { headers: { accept: "text/html" } })).text();
  const figures = Object.fromEntries(
    [...html.matchAll(/<dt>([^<]+)<\/dt><dd>([^<]*)/g)].map(([, name, value]) => [name, value]),
  );
  expect(figures).toMatchObject({ "Certified agents": "1", "Verdicts signed": expect.stringMatching(/^[1-9]$/) });
  expect(figures["USDC in escrow"]).toMatch(/^\d+\.\d\d/);
});
