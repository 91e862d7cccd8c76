import { describe, expect, test } from "vitest";
import { NETWORKS } from "../../api/platform/networks.ts";
import { historyTables, namesOf } from "../../indexer/history/rows.ts";
import { codeOf, importsOf, SOURCES, textOf } from "./sources.ts";

/** The rules of `docs/architecture.md` that are about text. `.dependency-cruiser.mjs` has those about imports. */

const TYPESCRIPT = SOURCES.filter((file) => file.endsWith(".ts"));
const isSlice = (file: string): boolean => /^api\/(?!platform\/)[^/]+\//.test(file);
const doesIo = (file: string): boolean => /(^|\/|-)(index|routes|store|chain|web|tarballs|probes)\.ts$/.test(file);

const offending = (files: readonly string[], pattern: RegExp): readonly string[] =>
  files.flatMap((file) => {
    const found = pattern.exec(codeOf(file).replace(/^\s*(\/\/|\/?\*).*$/gm, ""));
    return found === null ? [] : [`${file}: ${found[0]}`];
  });

describe("a rule of a slice", () => {
  const rules = TYPESCRIPT.filter((file) => isSlice(file) && !doesIo(file));

  test("reads no clock and starts no timer", () => {
    const clocks =
      /\b(Date\.now\b|new Date\(\)|performance\.|process\.hrtime|set(Timeout|Interval|Immediate)\b|AbortSignal\.timeout)/;
    expect(offending(rules, clocks)).toEqual([]);
  });

  test("draws no lots, reads no environment and fetches nothing", () => {
    expect(offending(rules, /\b(Math\.random\(|randomBytes\(|randomUUID\(|process\.env|(?<!\.)\bfetch\()/)).toEqual([]);
  });
});

test("only the table of networks tells one chain from another", () => {
  const home = "api/platform/networks.ts";
  const words = Object.values(NETWORKS).flatMap(({ id, key, chainId, rpcVariable, explorer, publicRpcUrl, usdc }) => [
    `${id}\\b`,
    `"${key}"`,
    // A small one, like 10, is also many other things.
    ...(chainId > 999 ? [`\\b${chainId}\\b`] : []),
    `"${rpcVariable}"`,
    explorer,
    publicRpcUrl,
    usdc.address,
  ]);
  const tells = new RegExp(words.join("|"), "i");
  expect(tells.test(textOf(home))).toBe(true);
  // Ponder keeps the name of its chain in its own tables.
  const others = TYPESCRIPT.filter((file) => /^(api|indexer)\//.test(file)).filter(
    (file) => file !== home && file !== "indexer/ponder.config.ts",
  );
  expect(others.filter((file) => tells.test(textOf(file)))).toEqual([]);
});

test("a preloaded history has the columns of the index's tables", () => {
  const schema = textOf("indexer/ponder.schema.ts").replaceAll('{ mode: "number" }', "");
  const columnsOf = (table: string): readonly string[] => {
    const [, columns = ""] =
      new RegExp(`onchainTable\\(\\s*"${table}",\\s*\\(t\\) => \\(\\{(.*?)\\}\\)`, "s").exec(schema) ?? [];
    return [...columns.matchAll(/(\w+): (?:\w+\(t\)|t\.)/g)].map(([, name = ""]) =>
      name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    );
  };
  for (const table of historyTables("selective"))
    expect([table, ...namesOf(table)]).toEqual([table, ...columnsOf(table)]);
});

describe("the packages", () => {
  const isCommandLine = (file: string): boolean => /\/(cli\.ts|refund-command\.ts|commands\/[^/]+)$/.test(file);

  test("read the environment, and use Node's Buffer, on the command line and in Express alone", () => {
    const files = TYPESCRIPT.filter((file) => /^packages\/(verifier|escrow|mcp)\/src\//.test(file)).filter(
      (file) => !isCommandLine(file) && !/\/(pending-payments|state-folder|connection|capture)\.ts$/.test(file),
    );
    expect(files.length).toBeGreaterThan(100);
    expect(offending(files, /\b(process|Buffer)\./)).toEqual([]);
  });
});

test("a file imports nothing from a folder that a dependency is built into", () => {
  const built = /^(@[\w.-]+\/)?[\w.-]+\/(.+\/)?(build|cjs|dist|esm|internal|lib|out|src|_\w+)\//;
  // The package's index would load 40 MB, and it exports nothing smaller.
  const contained = "@bitauth/libauth/build/lib/crypto/secp256k1.js";
  const inside = TYPESCRIPT.filter((file) => /^(api|indexer|packages|scripts)\//.test(file)).flatMap((file) =>
    importsOf(file)
      .filter((target) => built.test(target) && !SOURCES.includes(target) && target !== contained)
      .filter((target) => !/^(node:|(api|contracts|indexer|packages|scripts)\/)/.test(target))
      .map((target) => `${file}: ${target}`),
  );
  expect(inside).toEqual([]);
});

test("one file loads OpenTelemetry, and others know its types alone", () => {
  const loads = /^import (?!type )[^;]*? from "@opentelemetry\//m;
  const loading = TYPESCRIPT.filter((file) => /^(api|indexer|scripts)\//.test(file) && loads.test(textOf(file)));
  expect(loading).toEqual(["api/platform/telemetry/otel.ts"]);
});

test("no file changes a class that is not its own", () => {
  const files = TYPESCRIPT.filter((file) => /^(api|indexer|packages|scripts)\//.test(file));
  expect(offending(files, /\bObject\.create\b|\b(Object|Reflect)\.setPrototypeOf\b|\.prototype\b/)).toEqual([]);
});
