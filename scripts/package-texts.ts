import { NETWORKS } from "../api/platform/networks.ts";
import { CAPABILITIES, SINGLE_PRODUCTS } from "../packages/verifier/src/vocabulary.ts";
import type { RouteLine } from "./docs-tables.ts";

/*
 * The service's names and prices in packages that cannot import them. `npm run docs` writes them, and a test fails when one
 * is stale.
 */

const quoted = (names: readonly string[]): string => names.map((name) => `"${name}"`).join(", ");
const code = (names: readonly string[]): readonly string[] => names.map((name) => `\`${name}\``);
const ofBoth = (names: readonly string[]): string => new Intl.ListFormat("en-US").format(names);

/** Replaces each match. @throws Error if nothing matches, because then the pattern is out of date */
function filled(text: string, pattern: RegExp, by: string | ((...groups: string[]) => string)): string {
  if (text.search(pattern) < 0) throw new Error(`no part of the text matches ${pattern}`);
  return text.replace(pattern, by as string);
}

type Fill = (text: string, priceOf: (path: string) => string) => string;

const listed = (text: string): string =>
  filled(text, /(?<=<!-- capabilities -->).*?(?=<!-- end -->)/s, ofBoth(code(CAPABILITIES)));

const networks = Object.values(NETWORKS);

/** The generated parts, by file relative to `packages/`. */
const FILLS: Readonly<Record<string, Fill>> = {
  "action/src/vocabulary.ts": () =>
    `// Written by \`npm run docs\`: the action also works without the folders of the other packages.

export const CAPABILITIES = [
${CAPABILITIES.map((name) => `  "${name}",\n`).join("")}] as const;
export const SINGLE_PRODUCTS = [${quoted(SINGLE_PRODUCTS)}] as const;

export type Capability = (typeof CAPABILITIES)[number];
export type SingleProduct = (typeof SINGLE_PRODUCTS)[number];
`,
  "verifier/src/networks.ts": () =>
    `// Written by \`npm run docs\` from the service's own table.

/** The chains that the service knows, by CAIP-2. Circle's USDC has the name of its EIP-712 domain; the version is "2". */
export const NETWORKS = {
${networks
  .map(
    ({ id, key, chainId, usdc: { address, name } }) => `  "${id}": {
    key: "${key}",
    chainId: ${chainId},
    usdc: { address: "${address}", name: "${name}" },
  },
`,
  )
  .join("")}} as const;

export type Network = keyof typeof NETWORKS;
`,
  "escrow/src/escrow-scheme.ts": (text) =>
    filled(
      text,
      /(?<=^const USDC: .* = \{\n).*?(?=^\};)/ms,
      networks.map(({ id, usdc }) => `  "${id}": "${usdc.address}",\n`).join(""),
    ),
  "python/src/agent_payment_trust/cli/offer_receipt.py": (text) =>
    filled(text, /(?<=^_NETWORKS = )\{.*\}$/m, `{${networks.map(({ key, id }) => `"${key}": "${id}"`).join(", ")}}`),
  "action/action.yml": (text, priceOf) =>
    [
      [/(?<=must have a fresh PASS: )[^"]*/, CAPABILITIES.join(", ")] as const,
      [/(?<=description: "certify: )[\w ]+(?="\n {4}default: basic)/, SINGLE_PRODUCTS.join(" or ")] as const,
      [/(?<=examine up to three times"\n {4}default: ")[^"]*/, priceOf("/test/basic")] as const,
    ].reduce((left, [pattern, by]) => filled(left, pattern, by), text),
  "python/src/agent_payment_trust/requirement.py": (text) =>
    filled(text, /(?<=^CAPABILITIES = )\(.*\)$/m, `(${quoted(CAPABILITIES)})`),
  "verifier/README.md": listed,
  "gate/README.md": listed,
  "mcp/src/products.ts": (text, priceOf) =>
    filled(text, /(path: "([^"]+)", price: )[\d_]+/g, (_, before = "", path = "") => {
      const atomic = Math.round(Number(priceOf(path)) * 1_000_000);
      return `${before}${atomic.toLocaleString("en-US").replaceAll(",", "_")}`;
    }),
  "mcp/README.md": (text, priceOf) =>
    Object.entries({
      score_wallet: priceOf("/score"),
      score_batch: priceOf("/score/batch"),
      certify: SINGLE_PRODUCTS.map((name) => `${priceOf(`/test/${name}`)} ${name}`).join(", "),
      arbiter_verify: `${priceOf("/arbiter/verify")}, scored ${priceOf("/arbiter/verify/scored")}`,
    }).reduce(
      (left, [tool, price]) => filled(left, new RegExp(`(?<=^\\| \`${tool}\` \\| )[^|]*(?= \\|)`, "m"), price),
      text,
    ),
};

/** The files with generated parts, relative to `packages/`. */
export const PACKAGE_TEXTS: readonly string[] = Object.keys(FILLS);

/** Returns a package's file with the service's names and prices filled in. */
export function packageText(file: string, text: string, routes: readonly RouteLine[]): string {
  const priceOf = (path: string): string => {
    const price = routes.find((route) => route.path === path)?.price;
    if (price == null) throw new Error(`${path} has no price`);
    return price;
  };
  const fill = FILLS[file];
  if (fill === undefined) throw new Error(`packages/${file} has no generated parts`);
  return fill(text, priceOf);
}
