import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, test } from "vitest";
import { POLICY_VERSIONS } from "../../api/arbiter/policy/index.ts";
import { BAITED_KINDS } from "../../api/certificates/kinds/index.ts";
import { totalCost } from "../../api/certificates/kinds/kind.ts";
import { RETRY_COST, retry } from "../../api/certificates/kinds/retry.ts";
import { formatUsd } from "../../api/platform/money.ts";
import { MAIN_NETWORK, NETWORKS } from "../../api/platform/networks.ts";
import { CERTIFICATES_COST, dilution, dilutionFee, FAILED, FORGED_A } from "../../api/site/score-chapter.ts";
import { INDEPENDENCE, PAYMENT_VALUE_BANDS, QUALIFYING_PAYMENT } from "../../packages/verifier/src/score/bands.ts";
import { BAITED_PRODUCTS, CATEGORIES, PRODUCT_MENU, PRODUCTS } from "../../packages/verifier/src/vocabulary.ts";
import { GENERATED, type RouteLine, readRoutes, renderTables, withTables } from "../../scripts/docs-tables.ts";
import { SOURCES, textOf } from "./sources.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const read = (file: string): string => readFileSync(join(ROOT, file), "utf8");
const isOurs = (file: string): boolean => !/(^|\/)(node_modules|dist|artifacts|cache|\.data)(\/|$)/.test(file);
const PAPERS = globSync("**/*.md", { cwd: ROOT, exclude: (name) => !isOurs(name) }).filter(isOurs);
/** The pages for people who work on the service. A package's README is for its users. */
const GUIDES = PAPERS.filter((file) => !/^(packages|test)\//.test(file));
const FILES = globSync("{api,bench,contracts,ignition,indexer,packages,scripts,test}/**/*", {
  cwd: ROOT,
  exclude: (name) => !isOurs(name),
}).filter(isOurs);

/** Returns a document without its generated tables. */
const byHand = (file: string): string => read(file).replace(/<!-- generated: .*?<!-- end -->/gs, "");

const withoutFences = (text: string): string => text.replace(/^ {0,3}```.*?^ {0,3}```/gms, "");

let routes: readonly RouteLine[];

beforeAll(async () => {
  routes = await readRoutes();
});

describe("README.md", () => {
  test("The README has at most 150 lines", () => {
    expect(read("README.md").trimEnd().split("\n").length).toBeLessThanOrEqual(150);
  });
});

test("Every page of the docs has at most 250 lines, not counting generated tables", () => {
  const pages = PAPERS.filter((file) => file.startsWith("docs/"));
  expect(pages.length).toBeGreaterThan(30);
  expect(pages.filter((file) => byHand(file).trimEnd().split("\n").length > 250)).toEqual([]);
});

describe("generated tables", () => {
  test.each(GENERATED)("`npm run docs` leaves docs/%s unchanged", (name) => {
    const text = read(`docs/${name}`);
    expect(withTables(text, renderTables(routes))).toBe(text);
  });
});

test("docs/certificates.md has a row for each test", () => {
  const rows = [...read("docs/certificates.md").matchAll(/^\| `(\w+)` \| `(\w+)`/gm)].map(([, ...row]) => row);
  expect(rows).toEqual(PRODUCT_MENU.map((name) => [name, PRODUCTS[name].capability]));
});

test("docs/arbiter.md has a row for each category", () => {
  const [, afterwards = ""] = read("docs/arbiter.md").split("| Category |");
  const [table = ""] = afterwards.split("\n\n");
  expect([...table.matchAll(/^\| `([\w-]+)` \|/gm)].map(([, name]) => name)).toEqual(CATEGORIES);
});

test("docs/arbiter.md has a row for each version of the policy, with its first day", () => {
  const rows = [...read("docs/arbiter.md").matchAll(/^\| (\d+) \| (\d{4}-\d\d-\d\d) \|/gm)].map(([, ...row]) => row);
  expect(rows).toEqual(POLICY_VERSIONS.map(({ policy }) => [String(policy.version), policy.effective_date]));
});

test("Every name of code in the tables of CONTRIBUTING.md exists", () => {
  const rows = read("CONTRIBUTING.md")
    .split("\n")
    .filter((line) => line.startsWith("| **"))
    .join("\n");
  const names = new Set([...rows.matchAll(/`([A-Za-z]\w+)`/g)].map(([, name = ""]) => name));
  expect(names.size).toBeGreaterThan(10);
  const words = new Set(SOURCES.flatMap((file) => textOf(file).match(/\w+/g) ?? []));
  expect([...names].filter((name) => !words.has(name))).toEqual([]);
});

test("docs/behavior.md describes each test with a bait", () => {
  const text = byHand("docs/behavior.md");
  expect(BAITED_PRODUCTS.filter((name) => !text.includes(`\`${name}\` `))).toEqual([]);
});

describe("links", () => {
  /** The anchors that GitHub generates for a document's headings. */
  const anchorsOf = (text: string): ReadonlySet<string> => {
    const headings = [...withoutFences(text).matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = ""]) => heading);
    return new Set(
      headings.map((heading) =>
        heading
          .toLowerCase()
          .replace(/[^\p{L}\p{N}\s_-]/gu, "")
          .replaceAll(" ", "-"),
      ),
    );
  };

  test.each(PAPERS)("Every relative link and anchor in %s has a target", (file) => {
    const text = withoutFences(read(file));
    const targets = [...text.matchAll(/\]\(([^)\s]+)\)|(?:src|href)="([^"]+)"/g)].map(
      ([, link, attribute]) => link ?? attribute ?? "",
    );
    const broken = targets
      .filter((target) => !/^[a-z]+:/.test(target))
      .filter((target) => {
        const [path = "", anchor] = target.split("#");
        const to = path === "" ? file : relative(ROOT, join(ROOT, dirname(file), path));
        if (to.startsWith("..") || !existsSync(join(ROOT, to))) return true;
        return anchor !== undefined && !anchorsOf(read(to)).has(anchor);
      });
    expect(broken).toEqual([]);
  });

  test("Every page of the docs is linked from another document", () => {
    const linked = PAPERS.flatMap((file) =>
      [...withoutFences(read(file)).matchAll(/\]\(([^)\s#]+)/g)]
        .map(([, target = ""]) => relative(ROOT, join(ROOT, dirname(file), target)))
        .filter((target) => target !== file),
    );
    expect(PAPERS.filter((file) => file.startsWith("docs/") && !linked.includes(file))).toEqual([]);
  });
});

describe("named files", () => {
  const NAMES = new Set(FILES.map((file) => file.split("/").at(-1)));

  test.each(GUIDES)("Every path in %s exists", (file) => {
    const paths = [
      ...read(file).matchAll(
        /(?<![\w/.:@<>-])(?:api|bench|contracts|docs|ignition|indexer|packages|scripts|test)\/[\w./*<>-]*/g,
      ),
    ].map(([path]) => path.replace(/[.-]+$/, ""));
    const missing = paths.filter((path) => {
      const pattern = path.replace(/<[^>]*>/g, "*");
      return pattern.includes("*") ? globSync(pattern, { cwd: ROOT }).length === 0 : !existsSync(join(ROOT, path));
    });
    expect(missing).toEqual([]);
  });

  test.each(GUIDES)("Every file that %s names without its folder exists", (file) => {
    const names = [...read(file).matchAll(/`([\w-]+\.(?:ts|mjs|sol))`/g)].map(([, name = ""]) => name);
    expect(names.filter((name) => !NAMES.has(name))).toEqual([]);
  });
});

describe("prices", () => {
  const usd = (atomic: bigint | number): string => formatUsd(BigInt(atomic));
  /** Amounts other than prices of routes, from the constants in the code. */
  const AMOUNTS = new Set([
    ...BAITED_KINDS.flatMap((kind) => [kind.entry, kind.control, kind.bait.value, totalCost(kind)].map(usd)),
    ...[...retry.orders, RETRY_COST].map(usd),
    usd(QUALIFYING_PAYMENT),
    usd(INDEPENDENCE.floor),
    usd(CERTIFICATES_COST),
    ...PAYMENT_VALUE_BANDS.map(({ from }) => usd(from)),
    ...Object.values(FORGED_A).map(({ value }) => usd(value)),
    ...FAILED.map((failed) => usd(dilutionFee(dilution(failed)))),
  ]);
  const AMOUNT = /(?<![\d.])(\d+\.\d{2,6}) (?:test )?USDC?\b/g;

  test.each(GUIDES)("Every price in %s is the price of the route on its line", (file) => {
    const wrong = read(file)
      .split("\n")
      .flatMap((line, index) => {
        const named = routes.filter(({ path }) =>
          new RegExp(`${path.replace(/[.{}]/g, "\\$&")}(?![\\w/-])`).test(line),
        );
        const known = new Set(named.flatMap(({ price }) => (price === null ? [] : [price])));
        const isPriced = known.size > 0;
        return [...line.matchAll(AMOUNT)]
          .map(([, amount = ""]) => amount)
          .filter((amount) => !known.has(amount) && (isPriced || !AMOUNTS.has(amount)))
          .map((amount) => `line ${index + 1}: ${amount}`);
      });
    expect(wrong).toEqual([]);
  });
});

describe("settings", () => {
  const CONFIGURATION = "docs/configuration.md";
  /** Variables of the machine, Node, and GitHub's runner, and variables that our programs set for each other. */
  const SYSTEM = new Set(
    "PATH TMPDIR LD_LIBRARY_PATH NODE_COMPILE_CACHE GITHUB_ACTIONS GITHUB_OUTPUT GITHUB_STEP_SUMMARY SUPERVISED PAY_TO SHOP_URL".split(
      " ",
    ),
  );
  /** The variables in the first column of a section's tables. */
  const describedIn = (section: string): readonly string[] => {
    const text =
      read(CONFIGURATION)
        .split(/^## /m)
        .find((part) => part.startsWith(`${section}\n`)) ?? "";
    const cells = [...text.matchAll(/^\| ([^|]+) \|/gm)].map(([, cell = ""]) => cell);
    return cells.flatMap((cell) => [...cell.matchAll(/`([A-Z][A-Z0-9_]+)`/g)].map(([, name = ""]) => name)).sort();
  };
  /** The variables of a program's schema. */
  const readBy = (file: string): readonly string[] => {
    const [, own = ""] = /const ENVIRONMENT = z\.object\(\{\n(.*?)^\}\);/ms.exec(read(file)) ?? [];
    const [, log = ""] =
      /const LOG_VARIABLES = \{\n(.*?)^\};/ms.exec(read("api/platform/config/log-settings.ts")) ?? [];
    const schema = own.includes("...LOG_VARIABLES") ? own + log : own;
    const named = [...schema.matchAll(/^ {2}([A-Z][A-Z0-9_]+):/gm)].map(([, name = ""]) => name);
    // The node URLs come from the table of networks. The indexer reads one network.
    const networks = schema.includes("...RPC_URLS") ? Object.values(NETWORKS) : [NETWORKS[MAIN_NETWORK]];
    const spread = networks.map(({ rpcVariable }) => rpcVariable);
    return [...named, ...spread].sort();
  };

  test.each([
    ["The API", "api/platform/config/config.ts"],
    ["The indexer", "indexer/settings.ts"],
  ])("The section “%s” describes exactly the variables of %s", (section, file) => {
    expect(readBy(file).length).toBeGreaterThan(10);
    expect(describedIn(section)).toEqual(readBy(file));
  });

  test("Every variable that a script, a package, a test, or a benchmark reads is described", () => {
    const readers = FILES.filter((file) => /^(scripts|packages|test|bench)\/.*\.(ts|mjs)$/.test(file));
    const names = readers.flatMap((file) =>
      [...read(file).matchAll(/\b(?:process\.)?env\.([A-Z][A-Z0-9_]+)/g)].map(([, name = ""]) => name),
    );
    const text = read(CONFIGURATION);
    const isDescribed = (name: string) => SYSTEM.has(name) || new RegExp(`\`${name}[\`=]`).test(text);
    expect([...new Set(names)].filter((name) => !isDescribed(name)).sort()).toEqual([]);
  });
});
