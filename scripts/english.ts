import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * `npm run check` runs this on every text in the repository: `node scripts/english.ts [path…]`. It reports phrases that
 * a native American engineer would not write, with what to write instead. It sees patterns, not meaning: text that
 * passes still needs a reader.
 */

const ROOT = fileURLToPath(new URL("..", import.meta.url));

interface Tic {
  readonly pattern: string;
  readonly instead: string;
}

/** A space in a pattern also matches the end of a line in a comment. */
const TICS: readonly Tic[] = [
  {
    pattern: String.raw`\b[Ww]hoever\b|(?:[.;!?*/] |")(?:What|Who) [^?"]{1,120}?\.(?:\s|"|$)`,
    instead: "name the thing or the person",
  },
  { pattern: String.raw`\b[Nn]obody\b|\b[Nn]either\b[^.]{1,80}?\bnor\b|\bis nothing\b`, instead: "negate the verb" },
  { pattern: String.raw`\b[Aa]t once\b`, instead: "immediately, together, or in one call" },
  {
    pattern: String.raw`\bstands\b|\bstanding\b|\brests? on\b|\bgoes on\b|\bcomes? to\b`,
    instead: "is, depends on, continues, totals",
  },
  {
    pattern: String.raw`\bof (?:its|their|your|our|his) own\b|\bby (?:itself|themselves)\b|\b(?:that|those) of\b`,
    instead: "its own …, alone, or the noun",
  },
  {
    pattern: String.raw`(?:[.;!?*/] |")Of (?:a|an|the|all|its|these|those|two|three|several|many|each|every)\b`,
    instead: "subject first",
  },
  { pattern: String.raw`\bso (?:many|long|much|far)\b|\bthat far\b`, instead: "the number, or its name" },
  { pattern: String.raw`\bbesides?\b|\bthen too\b`, instead: "next to, with, also" },
  {
    pattern: String.raw`\bsays?\b(?![(:=,)])|\bsaid\b(?= [a-z])|\b(?:is|are|was|were|be|been) (?:told|asked)\b`,
    instead: "returns, reports, requests, shows",
  },
  {
    pattern: String.raw`\banother than\b|\ba (?:hundred|thousand|million)\b|\b(?:an?|one) \w+ an? (?:account|batch|block|buyer|call|chain|client|entry|file|folder|kind|log|network|page|payment|process|promise|purchase|request|route|row|sale|seller|slice|table|test|wallet)\b`,
    instead: "other than; 100, 1,000; one … per …",
  },
  { pattern: String.raw`\bwhat (?:became|becomes|has become|had become|will become) of\b`, instead: "its status" },
  {
    pattern: String.raw`\w: (?:it|they|he|she|otherwise|else|so|then|there|none|nothing|this is|that is) `,
    instead: "because, or a new sentence",
  },
  {
    pattern: String.raw`[Bb]ehaviour(?:s\b| [a-z])|[Aa]uthoris|[Rr]ecognis|[Oo]rganis|\b[Cc]olour|[Hh]onour|[Ff]avour|\b[Ll]icence\b|\b[Gg]rey\b|\btowards\b`,
    instead: "the American spelling",
  },
  {
    pattern: String.raw`\b(?:[Bb]ell|[Gg]lances?|Tills?|Drawers?|[Uu]plinks?|[Ll]eash|[Oo]wn addresses|[Bb]urnt|look_at|moved_at|named_at)\b`,
    instead: "the standard term",
  },
];

/** Where a phrase is right: the start of the path, and words around the phrase. */
const ALLOWED: readonly (readonly [path: string, words: string])[] = [
  // Published texts that signed documents quote.
  ["api/arbiter/policy/v1/policy.ts", "beside it and does not use them"],
  ["api/arbiter/policy/v1/policy.ts", "whichever side the verdict favours"],
  ["api/arbiter/policy/v1/policy.ts", "holds funds: it attests facts"],
  ["api/arbiter/policy/v2/ci-status.ts", "Of each check"],
  ["api/arbiter/policy/v2/http-delivery.ts", "neither read nor followed"],
  ["api/arbiter/policy/v2/offer-breach.ts", "Who pays for the verdict"],
  ["api/arbiter/policy/v2/offer-breach.ts", "without code: it may be"],
  ["api/arbiter/policy/v2/offer-breach.ts", "by exact: it may be"],
  ["api/arbiter/policy/v2/policy.ts", "by no other: it shows"],
  ["api/arbiter/policy/v2/policy.ts", "by itself"],
  ["api/escrow/contest/grounds.ts", "the evaluation of the delivery stands"],
  ["packages/", "400 or 422: it refused"],
  // A member of certificates.
  ["test/api/certificates/public-records.test.ts", "detected.behaviour as"],
  // A user of Unix.
  ["scripts/embedded/postgres-program.ts", 'findUser("nobody")'],
];

/** A test title is a whole sentence: it starts with a capital, a number, a placeholder, or the name of some code. */
const TITLE =
  /\b(?:it|test)(?:\.\w+(?:\([^()]*\))?)*\(\s*(["'`])(?![A-Z0-9$%`{(]|[\w/-]*[._:/@-]\w|[a-z]+[A-Z]|npm |viem |jose )[^\n]*?\1/g;

const BREAK = String.raw`(?:\s+(?:(?:\*|\/\/+|///|#|--|>)\s+)?)`;

const PATTERNS = TICS.map((tic) => ({ ...tic, pattern: new RegExp(tic.pattern.replaceAll(" ", BREAK), "gm") }));

const files = (paths: readonly string[]): readonly string[] =>
  (paths.length === 0
    ? ["*.md", "api", "bench", "contracts", "deploy", "docs", "ignition", "indexer", "packages", "scripts", "test"]
    : paths
  )
    .flatMap((path) =>
      /\.\w+$/.test(path) || path.includes("*")
        ? globSync(path, { cwd: ROOT })
        : globSync(`${path}/**/*.{ts,tsx,mjs,js,sol,sql,py,md,sh,yml,yaml}`, { cwd: ROOT }),
    )
    .filter((file) => !/(^|\/)(node_modules|dist|generated|out|vectors|\.[\w-]+)\//.test(file))
    .filter((file) => file !== "scripts/english.ts")
    .sort();

const found = (file: string): readonly string[] => {
  const text = readFileSync(join(ROOT, file), "utf8");
  const report = (index: number, match: string, instead: string): string =>
    `${file}:${text.slice(0, index).split("\n").length}: "${match.replace(/\s+/g, " ").trim()}": ${instead}`;
  const isAllowed = (index: number): boolean =>
    ALLOWED.some(([path, words]) => file.startsWith(path) && text.slice(index - 60, index + 60).includes(words));
  const tics = PATTERNS.flatMap(({ pattern, instead }) =>
    [...text.matchAll(pattern)]
      .filter(({ index }) => !isAllowed(index))
      .map(({ index, 0: match }) => report(index, match, instead)),
  );
  const titles = file.endsWith(".test.ts")
    ? [...text.matchAll(TITLE)].map(({ index, 0: match }) => report(index, match, "a whole sentence"))
    : [];
  return [...tics, ...titles];
};

const faults = files(process.argv.slice(2)).flatMap(found);
for (const fault of faults) process.stdout.write(`${fault}\n`);
if (faults.length > 0) process.exitCode = 1;
