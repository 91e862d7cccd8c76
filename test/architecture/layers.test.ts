import { describe, expect, test } from "vitest";
import { EFFECTS, filesOf, HTTP, layerOf, rank } from "./layers.ts";
import { API, codeOf, featureOf, importsOf, reachedFrom } from "./sources.ts";

const IMPURE_PACKAGES =
  /^(node:(fs|net|http|https|child_process|timers|os|dns|tls|worker_threads|readline|process)|pg|undici|pino|@hono\/node-server|viem\/actions)/;
const IMPURE_CALLS = /\b(Math\.random\(|randomBytes\(|randomUUID\(|process\.env|\bfetch\()/;
const CLOCKS_AND_TIMERS =
  /\b(Date\.now\b|new Date\(\)|performance\.|process\.hrtime|set(Timeout|Interval|Immediate)\b|AbortSignal\.timeout)/;

describe("the layers", () => {
  test("are read from the project's own files", () => {
    expect(API.length).toBeGreaterThan(30);
    expect(importsOf("api/service.ts")).toContain("api/catalog.ts");
    expect(importsOf("api/payments/gate.ts")).toContain("api/payments/step.ts");
  });

  test.each([
    ["speak HTTP", HTTP],
    ["have effects", EFFECTS],
  ])("list in order the files that %s, each of which exists", (_, declared) => {
    expect(declared).toEqual([...new Set(declared)].sort());
    expect(declared.filter((file) => !API.includes(file))).toEqual([]);
  });

  test("count every file of routes as one that speaks HTTP", () => {
    expect(API.filter((file) => /-routes?\.ts$/.test(file) && layerOf(file) !== "http")).toEqual([]);
  });
});

describe("the direction of imports", () => {
  test.each(API)("%s imports only what lies below it", (file) => {
    const from = layerOf(file);
    for (const target of importsOf(file).filter((path) => path.startsWith("api/"))) {
      const to = layerOf(target);
      if (from === "adapter") expect(["adapter", "pure", "kernel"], `${file} → ${target}`).toContain(to);
      else if (to === "adapter") expect(from, `only the wiring knows adapters: ${file} → ${target}`).toBe("wiring");
      else expect(rank(to), `${file} → ${target}`).toBeGreaterThanOrEqual(rank(from));
    }
  });

  test("the kernel knows no feature", () => {
    const outward = filesOf("kernel").flatMap((file) =>
      importsOf(file).filter((target) => target.startsWith("api/") && layerOf(target) !== "kernel"),
    );
    expect(outward).toEqual([]);
  });

  test("only the arbiter and the table of routes import the score; what it costs anyone may say", () => {
    const isScore = (target: string) => target.startsWith("api/score/") && target !== "api/score/request.ts";
    const importers = API.filter((file) => featureOf(file) !== "score" && importsOf(file).some(isScore));
    const allowed = ["api/arbiter/arbiter.ts", "api/catalog.ts", ...filesOf("adapter", "wiring")];
    expect(importers.filter((file) => !allowed.includes(file))).toEqual([]);
  });

  test("what decides a verdict knows neither scores nor certificates, however far its imports are followed", () => {
    const decides = /^api\/arbiter\/(policy\/|(claim|attestation|evidence|gather-evidence)\.ts$)/;
    const reached = reachedFrom(
      API.filter((file) => decides.test(file)),
      "api/",
    );
    expect(reached.size).toBeGreaterThan(8);
    expect([...reached].filter((file) => ["score", "certification"].includes(featureOf(file)))).toEqual([]);
  });
});

describe("the outside", () => {
  test.each(filesOf("effects"))("%s is reached through ports", (file) => {
    expect(importsOf(file).filter((target) => IMPURE_PACKAGES.test(target))).toEqual([]);
  });

  test.each(filesOf("pure").filter((file) => file !== "api/platform/config/config.ts"))(
    "%s is pure: no I/O and no chance",
    (file) => {
      expect(importsOf(file).filter((target) => IMPURE_PACKAGES.test(target) || target === "hono")).toEqual([]);
      expect(codeOf(file).match(IMPURE_CALLS)?.[0]).toBeUndefined();
    },
  );

  test.each(API.filter((file) => !["adapter", "wiring"].includes(layerOf(file))))(
    "%s asks no clock and starts no timer of its own",
    (file) => {
      expect(importsOf(file).filter((target) => /^node:(timers|perf_hooks)/.test(target))).toEqual([]);
      expect(codeOf(file).match(CLOCKS_AND_TIMERS)?.[0]).toBeUndefined();
    },
  );
});
