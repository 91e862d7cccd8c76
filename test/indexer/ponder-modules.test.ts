import { execFile } from "node:child_process";
import { readFileSync, realpathSync } from "node:fs";
import { findPackageJSON } from "node:module";
import { dirname, join } from "node:path";
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

/** Ponder's build of the index's tables, with what Vite says about each module that it translates. */
const BUILD = `
  import { spareUnusedModules } from ${file("indexer/unused-modules.ts")};
  spareUnusedModules();
  const { createBuild } = await import(${inPonder("build/index.js")});
  const close = [];
  const [rootDir, schemaFile] = ["indexer", "indexer/ponder.schema.ts"].map((path) => process.cwd() + "/" + path);
  const options = { rootDir, schemaFile, indexingDir: rootDir + "/src", apiDir: rootDir + "/src/api", ponderDir: rootDir + "/.ponder" };
  const build = await createBuild({ common: { options, buildShutdown: { add: (end) => close.push(end) }, logger: console } });
  const { status, result } = await build.executeSchema();
  await Promise.all(close.map((end) => end()));
  console.log(JSON.stringify({ status, hasTables: "wallet" in result.schema }));
`;

test("Ponder translates the index's own modules, and of no package", async () => {
  const { stdout, stderr } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", BUILD], {
    env: { ...bareEnvironment(), DEBUG: "vite:transform", NO_COLOR: "1" },
    maxBuffer: 2 ** 24,
  });
  expect(JSON.parse(stdout)).toEqual({ status: "success", hasTables: true });
  const translated = stderr.split("\n").filter((line) => line.includes("vite:transform"));
  expect(translated.filter((line) => line.includes("tables.ts"))).not.toEqual([]);
  expect(translated.filter((line) => line.includes("node_modules"))).toEqual([]);
});
