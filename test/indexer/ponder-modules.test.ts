import { execFile } from "node:child_process";
import { readFileSync, realpathSync } from "node:fs";
import { findPackageJSON } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { ponderPackage } from "../../indexer/deployment.ts";
import { bareEnvironment } from "../support/service/environment.ts";

const PONDER = dirname(ponderPackage());
const file = (path: string) => JSON.stringify(pathToFileURL(path).href);
const inPonder = (path: string) => file(join(PONDER, "dist/esm", path));

/** What a process of Node prints that has loaded Ponder as the indexer does. */
const PROGRAM = `
  import { registerHooks } from "node:module";
  import { trustNearModules } from ${file("indexer/near-modules.ts")};
  import { spareUnusedModules } from ${file("indexer/unused-modules.ts")};
  const loaded = [], searched = [];
  registerHooks({
    load: (url, context, next) => (loaded.push(url), next(url, context)),
    resolve: (specifier, context, next) => {
      const found = next(specifier, context);
      searched.push(found.url);
      return found;
    },
  });
  trustNearModules();
  spareUnusedModules();
  const { chains } = await import(${inPonder("utils/chains.js")});
  const { createConfig } = await import(${inPonder("index.js")});
  const { start } = await import(${inPonder("bin/commands/start.js")});
  const ids = [...new Set(Object.values(chains).map(({ id }) => id))];
  console.log(JSON.stringify({ loaded, searched, ids, does: [typeof createConfig, typeof start] }));
`;

interface Loaded {
  /** Every module. */
  readonly loaded: readonly string[];
  /** Those for which Node has looked. */
  readonly searched: readonly string[];
  readonly ids: readonly number[];
  readonly does: readonly string[];
}

const { loaded, searched, ids, does }: Loaded = await promisify(execFile)(
  process.execPath,
  ["--input-type=module", "-e", PROGRAM],
  { env: bareEnvironment(), maxBuffer: 2 ** 24 },
).then(({ stdout }) => JSON.parse(stdout));
const of = (part: string) => loaded.filter((url) => url.includes(part));

test("Ponder knows Base, and loads no other chain's definition and no GraphQL server", () => {
  expect([ids, does]).toEqual([[8453], ["function", "function"]]);
  expect(of("/viem/_esm/chains/definitions/")).toHaveLength(1);
  expect(of("/node_modules/graphql")).toEqual([]);
  expect(of("/node_modules/ponder/").length).toBeGreaterThan(50);
});

test("for most modules Node need not look: each is a file, under its own name, of a package of ES modules", () => {
  const looked = new Set(searched);
  const near = loaded.filter((url) => url.startsWith("file:") && !looked.has(url)).map((url) => fileURLToPath(url));
  expect(near.length).toBeGreaterThan(500);
  expect(near.filter((path) => realpathSync(path) !== path)).toEqual([]);
  const typeOf = (path: string) => JSON.parse(readFileSync(findPackageJSON(path) ?? "", "utf8")).type;
  expect(near.filter((path) => typeOf(pathToFileURL(path).href) !== "module")).toEqual([]);
});

/** Ponder's build of one of the indexes, as far as it needs neither a database nor a chain. */
const BUILD = `
  import { registerHooks } from "node:module";
  import { trustNearModules } from ${file("indexer/near-modules.ts")};
  import { spareUnusedModules } from ${file("indexer/unused-modules.ts")};
  const loaded = [];
  registerHooks({ load: (url, context, next) => (loaded.push(url), next(url, context)) });
  trustNearModules();
  spareUnusedModules();
  const { createBuild } = await import(${inPonder("build/index.js")});
  const close = [];
  const rootDir = process.argv[1];
  const [configFile, schemaFile, indexingDir, apiDir] =
    ["ponder.config.ts", "ponder.schema.ts", "src", "src/api"].map((path) => rootDir + "/" + path);
  const options = { rootDir, configFile, schemaFile, indexingDir, apiDir, ponderDir: rootDir + "/.ponder" };
  const build = await createBuild({ common: { options, buildShutdown: { add: (end) => close.push(end) }, logger: console } });
  const parts = [await build.executeConfig(), await build.executeSchema(), await build.executeIndexingFunctions()];
  await Promise.all(close.map((end) => end()));
  console.log(JSON.stringify({
    loaded,
    failed: parts.filter(({ status }) => status !== "success"),
    contracts: Object.keys(parts[0].result.config.contracts),
    tables: Object.keys(parts[1].result.schema),
    handles: parts[2].result.indexingFunctions.map(({ name }) => name),
  }));
`;

interface Built {
  readonly loaded: readonly string[];
  readonly failed: readonly unknown[];
  readonly contracts: readonly string[];
  readonly tables: readonly string[];
  readonly handles: readonly string[];
}

async function built(root: string): Promise<Built> {
  const env = { ...bareEnvironment(), BASE_RPC_URL: "http://127.0.0.1:1", ESCROW_ADDRESSES: `0x${"e5".repeat(20)}` };
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", BUILD, resolve(root)], {
    env: { ...env, POLL_MS: "250", START_BLOCK: "1", ESCROW_START_BLOCK: "1", INDEX_SCOPE: "full" },
    maxBuffer: 2 ** 24,
  });
  return JSON.parse(stdout);
}

/** As their text has them, in which order Ponder locks them. */
const TABLES =
  "payerSlot floorBlock walletDay pair wallet paid payeeSlot payerFunder head position coverage hold escrowBuyer escrowDay";

test.each([
  ["indexer", "Usdc", TABLES, "Usdc:Transfer"],
  ["indexer/escrows", "Escrow", "head position escrowContract escrowPayment escrowOpen", "Escrow:Held"],
])("Node runs the modules of %s: Ponder gets its contracts, tables and handlers, and no Vite", async (...row) => {
  const [root, contract, inOrder, handled] = row;
  const { failed, contracts, tables, handles, ...rest } = await built(root);
  expect(failed).toEqual([]);
  expect(contracts).toContain(contract);
  expect(tables.join(" ")).toBe(inOrder);
  expect(handles).toContain(handled);
  expect(handles).toContain("Head:block");
  const paths = rest.loaded.map((url) => url.replace(/^.*\/node_modules\//, ""));
  expect(paths.filter((path) => /^(vite|rolldown|rollup|esbuild|graphql)\b/.test(path))).toEqual([]);
  const tablesOf = rest.loaded.filter((url) => url.endsWith("/ponder.schema.ts"));
  expect(tablesOf).toEqual([pathToFileURL(resolve(root, "ponder.schema.ts")).href]);
});
