import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createActivityIndex } from "../../../api/adapters/index/activity.ts";
import { connect } from "../../../api/adapters/postgres/connection.ts";
import { waitUntil } from "../../../scripts/embedded/wait-until.ts";
import { type Launched, launchIndexer } from "../../indexer/launched.ts";
import {
  codeOn,
  inShell,
  installForReader,
  type PageCode,
  type Reader,
  run,
  serve,
} from "../../support/browser/page-code.ts";
import { startTestChain, type TestChain } from "../../support/chain/chain.ts";
import { deployEscrow } from "../../support/escrow/contract.ts";
import { PAY_TO } from "../../support/service/accounts.ts";
import { freshDatabase } from "../../support/service/database.ts";
import { startService, type TestService } from "../../support/service/service.ts";

// The documentation's code, taken from its page and run as a reader would run it, against the real service and its index.

let chain: TestChain;
let service: TestService;
let launched: Launched;
let reader: Reader;
let blocks: ReadonlyMap<string, PageCode>;

beforeAll(async () => {
  const home = await mkdtemp(join(tmpdir(), "docs-code-"));
  const installed = installForReader(home, []);
  chain = await startTestChain({ mining: { everySeconds: 1 } });
  const escrow = await deployEscrow(chain);
  const database = await freshDatabase();
  launched = launchIndexer({
    DATABASE_URL: database.ownerUrl,
    BASE_RPC_URL: chain.rpcUrl,
    PAY_TO_ADDRESS: PAY_TO,
    EXCLUSIVE: "1",
    ESCROW_ADDRESSES: escrow.address,
  });
  service = await startService({ chain, database, config: { escrowAddresses: [escrow.address] } });
  const [payer, merchant] = [generatePrivateKey(), generatePrivateKey()];
  await chain.fund(privateKeyToAccount(payer).address, 10_000_000n);
  await chain.setBalance(privateKeyToAccount(merchant).address, 10n ** 18n);
  const env = { PAYER_PRIVATE_KEY: payer, MERCHANT_PRIVATE_KEY: merchant, BASE_RPC_URL: chain.rpcUrl };
  reader = { home, env };
  blocks = new Map((await codeOn(`${service.url}/docs`)).map((block) => [block.id, block]));
  await installed;
}, 90_000);

afterAll(async () => {
  launched?.letGo();
  await launched?.ended;
  await service?.stop();
  await chain?.stop();
  await rm(reader.home, { recursive: true, force: true });
});

const block = (id: string): PageCode => {
  const found = blocks.get(id);
  if (found === undefined) throw new Error(`The page has no code ${id}.`);
  return found;
};

/** Each by the blocks that it runs. */
const RUNS: Readonly<Record<string, () => Promise<void>>> = {
  install: async () => {
    const programs = [...blocks.values()].filter(({ caption }) => caption.endsWith(".mjs"));
    const imported = programs.flatMap(({ text }) =>
      [...text.matchAll(/ from "(@[^/"]+\/[^/"]+|[^@/"]+)/g)].map(([, name]) => name),
    );
    const used = [...new Set(imported)].filter((name) => !name?.startsWith("node:"));
    expect(block("install").text.split(" ").slice(2).sort()).toEqual(used.sort());
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
  "verify-wallet": async () => {
    expect(JSON.parse(await inShell(reader, block("verify-wallet")))).toMatchObject({ verified: false });
  },
  "escrow-merchant escrow-buyer": async () => {
    const shop = await serve(reader, block("escrow-merchant"));
    const buyer = { ...reader, env: { ...reader.env, SHOP_URL: `${shop}/haiku` } };
    expect(await run(buyer, block("escrow-buyer"))).toBe("{ haiku: 'An old silent pond' } release\n");
  },
  "check-credential": async () => {
    expect(await inShell(reader, block("check-credential"))).toMatch(/^valid\n/);
  },
  scores: async () => {
    const pool = connect(service.config.databaseUrl, 1);
    const { position } = createActivityIndex(pool, { viewsSchema: "live" });
    const isThere = await waitUntil(async () => (await position()) !== null, 60_000);
    await pool.end();
    expect(isThere).toBe(true);
    const said = await run(reader, block("scores"));
    expect(said.match(/^0x[0-9a-f]{40} \d+ /gm)).toHaveLength(2);
    expect(said.match(/^computed again on this machine: the same$/gm)).toHaveLength(2);
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

test("all code of the page is run here", () => {
  expect([...blocks.keys()].sort()).toEqual(
    Object.keys(RUNS)
      .flatMap((ids) => ids.split(" "))
      .sort(),
  );
});

test.for(Object.keys(RUNS))("the code of %s does what the page says", { timeout: 90_000 }, async (ids) =>
  RUNS[ids]?.(),
);

test("the home page counts what was bought", { timeout: 60_000 }, async () => {
  await run(reader, block("pay"));
  await run(reader, block("verdict"));
  const html = await (await fetch(service.url, { headers: { accept: "text/html" } })).text();
  const figures = Object.fromEntries(
    [...html.matchAll(/<dt>([^<]+)<\/dt><dd>([^<]*)/g)].map(([, name, value]) => [name, value]),
  );
  expect(figures).toMatchObject({ "Agents certified now": "1", "Verdicts signed": expect.stringMatching(/^[1-9]$/) });
  expect(figures["USDC in escrow now"]).toMatch(/^\d+\.\d\d/);
});
