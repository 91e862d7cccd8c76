import { afterAll, describe, expect, test } from "vitest";
import { step } from "../../api/payments/step.ts";
import { type Exploration, explore } from "./explore.ts";
import { RULES } from "./rules.ts";
import type { World } from "./world.ts";
import { BEYOND, WORLDS, type WorldName } from "./worlds.ts";

/**
 * The real machine in every interleaving of small worlds, with API processes and a resolver that crash or pause
 * anywhere, a client that resends anything, a facilitator that lies or a relayer that settles in batches, and a chain
 * that reorganizes. The worlds have no real time, second reorganization, or baits. `worlds.ts` explains how to explore
 * larger bounds.
 */

/** With the larger bounds, one world takes minutes of processor time. */
const TIMEOUT_MS = process.env.MODEL === "full" ? 3_600_000 : 600_000;
const names = Object.keys(WORLDS) as WorldName[];
const explorations = new Map<WorldName, Exploration & { readonly ms: number }>();
const asBuilt = (world: World): Exploration => explore({ world, step, off: null });

function visit(name: WorldName) {
  const known = explorations.get(name);
  if (known !== undefined) return known;
  const started = performance.now();
  const explored = { ...asBuilt(WORLDS[name]), ms: performance.now() - started };
  explorations.set(name, explored);
  return explored;
}

const table: string[] = [];
/** Reported without a world, because no world merges or duplicates records by id. */
const SECOND_LINE = "record ids derive from the authorization";
const line = (what: string, where: string, outcome: string) => `${what.padEnd(64)} ${where.padEnd(17)} ${outcome}`;

afterAll(() => {
  const worlds = [...explorations].map(([name, { states, ms }]) =>
    line(name, `${states} states`, `${Math.round(ms)} ms`),
  );
  console.log(
    [
      "the worlds",
      ...worlds,
      "",
      "broken promises without a rule",
      ...table,
      line(SECOND_LINE, "every world", "no promise breaks: a second line of defense"),
    ].join("\n"),
  );
});

describe("Every interleaving", () => {
  test.each(names)(
    "In every interleaving of the world %s, all promises hold and the good ends remain reachable",
    { timeout: TIMEOUT_MS },
    (name) => {
      expect(visit(name).broken).toBeNull();
    },
  );

  test("The worlds together reach every answer and every row state", { timeout: TIMEOUT_MS }, () => {
    const covered = new Set(names.flatMap((name) => [...visit(name).covered]));
    expect([...covered].sort()).toEqual(EVERYTHING);
    const states = names.reduce((sum, name) => sum + visit(name).states, 0);
    expect(states).toBeGreaterThan(3_000_000);
  });
});

/** Every answer and row state in the gate's design, and every state of a batch. */
const EVERYTHING = [
  "batch of 1, lost",
  "batch of 1, mined",
  "batch of 1, mined, 1 failed",
  "batch of 1, sent",
  "batch of 2, mined",
  "batch of 2, mined, 1 failed",
  "batch of 2, mined, 2 failed",
  "batch of 2, sent",
  "forger: malformed",
  "forger: pay",
  "payer: conflict",
  "payer: conflict, under the same identifier",
  "payer: pay",
  "payer: pay, under the same identifier",
  "payer: replay",
  "payer: replay, under the same identifier",
  "payer: result",
  "payer: unacceptable",
  "payer: wait, crowded",
  "payer: wait, failed, charged",
  "payer: wait, held",
  "payer: wait, held, charged",
  "payer: wait, held, charged, under the same identifier",
  "payer: wait, held, under the same identifier",
  "payer: wait, no place",
  "payer: wait, unavailable",
  "payer: wait, unavailable, charged",
  "payer: wait, unavailable, under the same identifier",
  "payer: wait, unsettled",
  "reader: conflict",
  "resolver: done",
  "row fulfilled",
  "row fulfilled final",
  "row received",
  "row settled",
  "row settling",
  "row void expired",
  "row void nonce_consumed",
  "row void refused",
  "row void reversed",
  "row void reverted",
];

describe("Mutations", () => {
  test.each(RULES)(
    'Without the rule "%s", in the world %s, promise %i breaks',
    { timeout: TIMEOUT_MS },
    (...[rule, world, breaks, without]) => {
      const machine = typeof without === "string" ? { step, off: without } : { step: without, off: null };
      const { broken } = explore({ world: WORLDS[world], ...machine });
      expect(broken?.promise).toMatch(new RegExp(`^${breaks}: `));
      table.push(line(rule, world, `${broken?.trace.length} steps to ${broken?.promise}`));
    },
  );
});

describe("Limits of the gate", () => {
  test("A reader of the chain who rebuilds a header without an identifier gets its replay", () => {
    expect(asBuilt(BEYOND.calldata).broken?.promise).toMatch(/^6: /);
  });
});
