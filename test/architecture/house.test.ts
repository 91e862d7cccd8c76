import { describe, expect, test } from "vitest";
import { NETWORKS } from "../../api/platform/networks.ts";
import { historyTables, namesOf } from "../../indexer/history/rows.ts";
import { codeOf, importsOf, SOURCES, textOf } from "./sources.ts";

/** The rules of `docs/architecture.md` about text. `.dependency-cruiser.mjs` has the rules about imports. */

const TYPESCRIPT = SOURCES.filter((file) => file.endsWith(".ts"));
const isSlice = (file: string): boolean => /^api\/(?!platform\/)[^/]+\//.test(file);
const doesIo = (file: string): boolean => /(^|\/|-)(index|routes|store|chain|web|tarballs|probes)\.ts$/.test(file);

const offending = (files: readonly string[], pattern: RegExp): readonly string[] =>
  files.flatMap((file) => {
    const found = pattern.exec(codeOf(file).replace(/^\s*(\/\/|\/?\*).*$/gm, ""));
    return found === null ? [] : [`${file}: ${found[0]}`];
  });

describe("rule files of slices", () => {
  const rules = TYPESCRIPT.filter((file) => isSlice(file) && !doesIo(file));

  test("A rule does not read a clock or start a timer", () => {
    const clocks =
      /\b(Date\.now\b|new Date\(\)|performance\.|process\.hrtime|set(Timeout|Interval|Immediate)\b|AbortSignal\.timeout)/;
    expect(offending(rules, clocks)).toEqual([]);
  });

  test("A rule does not use randomness, the environment, or the network", () => {
    expect(
      offending(rules, /\b(Math\.random\(|randomBytes\(|randomInt\(|randomUUID\(|process\.env|(?<!\.)\bfetch\()/),
    ).toEqual([]);
  });
});

test("Only the table of networks has facts about single chains", () => {
  const home = "api/platform/networks.ts";
  const words = Object.values(NETWORKS).flatMap(({ id, key, chainId, rpcVariable, explorer, publicRpcUrl, usdc }) => [
    `${id}\\b`,
    `"${key}"`,
    // A small chain id, such as 10, also occurs as an ordinary number.
    ...(chainId > 999 ? [`\\b${chainId}\\b`] : []),
    `"${rpcVariable}"`,
    explorer,
    publicRpcUrl,
    usdc.address,
  ]);
  const tells = new RegExp(words.join("|"), "i");
  expect(tells.test(textOf(home))).toBe(true);
  // Ponder stores the name of its chain in its own tables.
  const others = TYPESCRIPT.filter((file) => /^(api|indexer)\//.test(file)).filter(
    (file) => file !== home && file !== "indexer/ponder.config.ts",
  );
  expect(others.filter((file) => tells.test(textOf(file)))).toEqual([]);
});

test("A preloaded history has the same columns as the index's tables", () => {
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

describe("packages", () => {
  const isCommandLine = (file: string): boolean => /\/(cli\.ts|refund-command\.ts|commands\/[^/]+)$/.test(file);

  test("Packages use `process` and `Buffer` only in command-line programs and in Express", () => {
    const files = TYPESCRIPT.filter((file) => /^packages\/(verifier|escrow|mcp)\/src\//.test(file)).filter(
      (file) => !isCommandLine(file) && !/\/(pending-payments|state-folder|connection|capture)\.ts$/.test(file),
    );
    expect(files.length).toBeGreaterThan(100);
    expect(offending(files, /\b(process|Buffer)\./)).toEqual([]);
  });
});

test("Files do not import from a dependency's build folders", () => {
  const built = /^(@[\w.-]+\/)?[\w.-]+\/(.+\/)?(build|cjs|dist|esm|internal|lib|out|src|_\w+)\//;
  // The package's index would load 40 MB, and it has no smaller export.
  const contained = "@bitauth/libauth/build/lib/crypto/secp256k1.js";
  const inside = TYPESCRIPT.filter((file) => /^(api|indexer|packages|scripts)\//.test(file)).flatMap((file) =>
    importsOf(file)
      .filter((target) => built.test(target) && !SOURCES.includes(target) && target !== contained)
      .filter((target) => !/^(node:|(api|contracts|indexer|packages|scripts)\/)/.test(target))
      .map((target) => `${file}: ${target}`),
  );
  expect(inside).toEqual([]);
});

test("One file loads OpenTelemetry, and others import only its types", () => {
  const loads = /^import (?!type )[^;]*? from "@opentelemetry\//m;
  const loading = TYPESCRIPT.filter((file) => /^(api|indexer|scripts)\//.test(file) && loads.test(textOf(file)));
  expect(loading).toEqual(["api/platform/telemetry/otel.ts"]);
});

test("No file changes the prototype of a class", () => {
  const files = TYPESCRIPT.filter((file) => /^(api|indexer|packages|scripts)\//.test(file));
  expect(offending(files, /\bObject\.create\b|\b(Object|Reflect)\.setPrototypeOf\b|\.prototype\b/)).toEqual([]);
});
