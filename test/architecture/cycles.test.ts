import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { cyclesOf, type Graph } from "./cycles.ts";
import { filesOf } from "./layers.ts";
import { API, featureOf, importsOf, SOURCES } from "./sources.ts";

const PACKAGES: Readonly<Record<string, string>> = {
  "agent-payment-trust-verifier": "packages/verifier/src/index.ts",
  "agent-payment-trust-escrow": "packages/escrow/src/index.ts",
};

const FILES: Graph = new Map(
  SOURCES.filter((file) => !file.endsWith(".sol")).map((file) => [
    file,
    importsOf(file)
      .map((target) => PACKAGES[target] ?? target)
      .filter((target) => SOURCES.includes(target)),
  ]),
);

/** What is filed by feature; layers below and around them have their own rules. */
const FEATURES = new Set(
  filesOf("http", "effects", "pure")
    .map(featureOf)
    .filter((name) => !name.endsWith(".ts")),
);

const featuresOf = (feature: string): string[] =>
  API.filter((file) => featureOf(file) === feature)
    .flatMap((file) => FILES.get(file) ?? [])
    .filter((target) => target.startsWith("api/"))
    .map(featureOf)
    .filter((target) => target !== feature && FEATURES.has(target));

describe("imports, types too, make no cycle", () => {
  test("between files", () => {
    expect(FILES.size).toBeGreaterThan(400);
    expect([...FILES.values()].flat().length).toBeGreaterThan(1_500);
    expect(cyclesOf(FILES)).toEqual([]);
  });

  test("between features of the service", () => {
    expect(FEATURES.size).toBeGreaterThan(8);
    expect(cyclesOf(new Map([...FEATURES].map((feature) => [feature, featuresOf(feature)])))).toEqual([]);
  });
});

test("only benchmarks import benchmarks", () => {
  const importers = [...FILES].filter(([, targets]) => targets.some((target) => target.startsWith("bench/")));
  expect(importers.length).toBeGreaterThan(10);
  expect(importers.map(([file]) => file).filter((file) => !file.startsWith("bench/"))).toEqual([]);
});

describe("a cycle", () => {
  test("is found wherever nodes lead to each other, and is told apart from one beside it", () => {
    const graph = { a: ["b"], b: ["c", "d"], c: ["a"], d: ["e"], e: ["d", "f"], f: [], alone: ["a", "alone"] };
    expect(cyclesOf(new Map(Object.entries(graph))).sort()).toEqual([
      ["a", "b", "c"],
      ["d", "e"],
    ]);
  });

  test("joins exactly the nodes that reach each other", () => {
    const edges = fc.array(fc.array(fc.nat(9), { maxLength: 3 }), { minLength: 10, maxLength: 10 });
    fc.assert(
      fc.property(edges, (targets) => {
        const graph = new Map(targets.map((list, node) => [String(node), list.map(String)]));
        const reach = (from: string) => {
          const reached = new Set(graph.get(from));
          for (const node of reached) for (const next of graph.get(node) ?? []) reached.add(next);
          return reached;
        };
        const together = (node: string) => [...graph.keys()].filter((b) => reach(node).has(b) && reach(b).has(node));
        const expected = [...graph.keys()].map((node) => [...new Set([node, ...together(node)])].sort());
        const groups = new Set(expected.filter((group) => group.length > 1).map(String));
        expect(cyclesOf(graph).map(String).sort()).toEqual([...groups].sort());
      }),
    );
  });
});
