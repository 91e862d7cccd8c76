import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const filesUnder = (folder: string, pattern: RegExp): string[] =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .map((name) => join(folder, name))
    .filter((name) => pattern.test(name) && !/node_modules|generated|\bdist\b/.test(name));

const SOURCES = ["api", "indexer", "packages", "scripts", "contracts", "bench", "test", "ignition"].flatMap((folder) =>
  filesUnder(folder, /\.(ts|mjs|sol)$/),
);
const API = SOURCES.filter((file) => file.startsWith("api/") && file.endsWith(".ts"));

/** What a file imports: paths from the project's root for its own files, names for packages. */
function importsOf(file: string): string[] {
  const text = codeOf(file);
  const found = [
    ...text.matchAll(/^\s*(?:import|export)\s(?:[^;]*?\sfrom\s+)?"([^"]+)"/gm),
    ...text.matchAll(/\bimport\("([^"]+)"\)/g),
  ];
  return found
    .map(([, target]) => target ?? "")
    .map((target) => (target.startsWith(".") ? relative(ROOT, resolve(join(ROOT, dirname(file)), target)) : target));
}

/** The place of a file in the direction main → app → catalog → routes → service → pure rules and ports → kernel. */
const LAYERS = ["main", "app", "catalog", "routes", "service", "pure", "kernel"] as const;
type Layer = (typeof LAYERS)[number] | "adapter";

function layerOf(file: string): Layer {
  if (file.startsWith("api/adapters/")) return "adapter";
  if (file.startsWith("api/kernel/")) return "kernel";
  const name = file.split("/").at(-1) ?? "";
  if (file === "api/main.ts" || file.startsWith("api/wiring/")) return "main";
  if (file === "api/app.ts") return "app";
  if (file === "api/catalog.ts") return "catalog";
  if (name === "routes.ts") return "routes";
  if (name === "service.ts" || file === "api/payments/gate.ts") return "service";
  return "pure";
}

const rank = (layer: Layer): number => (layer === "adapter" ? -1 : LAYERS.indexOf(layer));
/** Code that a page shows as an example is text, not code. */
const codeOf = (file: string): string =>
  readFileSync(join(ROOT, file), "utf8").replace(
    /`[^`]*`/g,
    (template) => template.match(/\$\{[^}]*\}/g)?.join(" ") ?? "",
  );

const featureOf = (file: string): string => file.split("/")[1] ?? "";

const IMPURE_PACKAGES =
  /^(node:(fs|net|http|https|child_process|timers|os|dns|tls|worker_threads|readline|process)|pg|undici|pino|drizzle-orm|@hono\/node-server|viem\/actions)/;
const IMPURE_CALLS =
  /\b(Date\.now\(|new Date\(\)|Math\.random\(|randomBytes\(|randomUUID\(|setTimeout\(|setInterval\(|process\.env|\bfetch\()/;

describe("the direction of imports", () => {
  test("the rules read the project's own files", () => {
    expect(API.length).toBeGreaterThan(30);
    expect(importsOf("api/main.ts")).toContain("api/catalog.ts");
    expect(importsOf("api/payments/gate.ts")).toContain("api/payments/step.ts");
  });

  test.each(API)("%s imports only what lies below it", (file) => {
    const from = layerOf(file);
    for (const target of importsOf(file).filter((path) => path.startsWith("api/"))) {
      const to = layerOf(target);
      if (from === "adapter") expect(["adapter", "pure", "kernel"], `${file} → ${target}`).toContain(to);
      else if (to === "adapter") expect(from, `only main wires adapters: ${file} → ${target}`).toBe("main");
      else expect(rank(to), `${file} → ${target}`).toBeGreaterThanOrEqual(rank(from));
    }
  });

  test.each(API.filter((file) => layerOf(file) === "service"))("%s touches the outside only through ports", (file) => {
    expect(importsOf(file).filter((target) => IMPURE_PACKAGES.test(target))).toEqual([]);
  });

  test.each(API.filter((file) => layerOf(file) === "pure" && file !== "api/config.ts"))(
    "%s is pure: no I/O, clock or chance",
    (file) => {
      expect(importsOf(file).filter((target) => IMPURE_PACKAGES.test(target) || target === "hono")).toEqual([]);
      expect(codeOf(file).match(IMPURE_CALLS)?.[0]).toBeUndefined();
    },
  );

  test("the kernel knows no feature", () => {
    const outward = API.filter((file) => layerOf(file) === "kernel").flatMap((file) =>
      importsOf(file).filter((target) => target.startsWith("api/") && layerOf(target) !== "kernel"),
    );
    expect(outward).toEqual([]);
  });

  test("only the arbiter's service may import the score", () => {
    const importers = API.filter(
      (file) => featureOf(file) !== "score" && importsOf(file).some((target) => target.startsWith("api/score/")),
    );
    expect(
      importers.filter(
        (file) =>
          !["api/arbiter/arbiter.ts", "api/catalog.ts"].includes(file) && !["adapter", "main"].includes(layerOf(file)),
      ),
    ).toEqual([]);
  });

  test("what decides a verdict knows neither scores nor certificates, however far its imports are followed", () => {
    const decides = /^api\/arbiter\/(categories|policy|evidence)\/|^api\/arbiter\/(claim|verdict|attestation)\.ts$/;
    const reached = new Set(API.filter((file) => decides.test(file)));
    expect(reached.size).toBeGreaterThan(8);
    for (const file of reached)
      for (const target of importsOf(file)) if (target.startsWith("api/")) reached.add(target);
    expect([...reached].filter((file) => ["score", "certification"].includes(featureOf(file)))).toEqual([]);
  });
});

describe("the packages", () => {
  const PACKAGES = SOURCES.filter((file) => file.startsWith("packages/") && file.endsWith(".ts"));
  const ofVerifier = PACKAGES.filter((file) => file.startsWith("packages/verifier/src/"));
  const ofEscrow = PACKAGES.filter((file) => file.startsWith("packages/escrow/src/"));
  const ofMcp = PACKAGES.filter((file) => file.startsWith("packages/mcp/src/"));
  const isCommandLine = (file: string) => /\/(cli\.ts|refund-command\.ts|commands\/[^/]+)$/.test(file);

  test("the rules read the packages' files", () => {
    expect(ofVerifier.filter(isCommandLine).length).toBeGreaterThan(1);
    expect(ofEscrow.filter(isCommandLine)).toHaveLength(2);
    expect(ofMcp.filter(isCommandLine)).toHaveLength(1);
    expect(importsOf("packages/verifier/src/signatures.ts")).toContain("packages/verifier/src/strict-json.ts");
  });

  test.each(PACKAGES)("%s imports nothing of the service's", (file) => {
    const [, name] = file.split("/");
    const own = /^(api|indexer|packages|scripts|bench|test)\//;
    expect(importsOf(file).filter((target) => own.test(target) && !target.startsWith(`packages/${name}/`))).toEqual([]);
  });

  test.each(ofVerifier)(
    "%s depends on jose, canonicalize and @noble/hashes; only the command line on Node, only FAIL proofs on viem",
    (file) => {
      const outside = importsOf(file).filter((target) => !target.startsWith("packages/"));
      const more = isCommandLine(file) ? "|node:.+" : file.endsWith("/fail-proof.ts") ? "|viem" : "";
      const allowed = new RegExp(`^(jose|canonicalize|@noble/hashes/sha2\\.js${more})$`);
      expect(outside.filter((target) => !allowed.test(target))).toEqual([]);
      if (!isCommandLine(file)) {
        expect(importsOf(file).filter(isCommandLine)).toEqual([]);
        expect(codeOf(file)).not.toMatch(/\b(process|Buffer)\./);
      }
    },
  );

  test.each(ofEscrow)("%s depends on viem, and on hono's types; only the command line on Node", (file) => {
    const outside = importsOf(file).filter((target) => !target.startsWith("packages/"));
    const allowed = isCommandLine(file) ? /^(viem(\/(accounts|actions))?|node:.+)$/ : /^(viem(\/actions)?|hono)$/;
    expect(outside.filter((target) => !allowed.test(target))).toEqual([]);
    expect(readFileSync(join(ROOT, file), "utf8")).not.toMatch(/^import (?!type )[^;]*"hono/m);
    if (!isCommandLine(file)) {
      expect(importsOf(file).filter(isCommandLine)).toEqual([]);
      expect(codeOf(file)).not.toMatch(/\b(process|Buffer)\./);
    }
  });

  test.each(ofMcp)("%s depends on its few packages; only the command line on stdio and the environment", (file) => {
    const outside = importsOf(file).filter((target) => !target.startsWith("packages/"));
    const allowed =
      /^(zod|viem(\/accounts)?|canonicalize|@modelcontextprotocol\/server(\/stdio)?|@x402\/(fetch|evm\/exact\/client)|agent-payment-trust-verifier|node:crypto)$/;
    expect(outside.filter((target) => !allowed.test(target))).toEqual([]);
    if (!isCommandLine(file)) {
      expect(importsOf(file).filter(isCommandLine)).toEqual([]);
      expect(outside.filter((target) => /stdio$/.test(target))).toEqual([]);
      expect(codeOf(file)).not.toMatch(/\b(process|Buffer)\./);
    }
  });

  test("what the service serves at /mcp reaches no code that signs, however far its imports are followed", () => {
    const reached = new Set(["packages/mcp/src/free-server.ts", "packages/mcp/src/tools/free.ts"]);
    for (const file of reached)
      for (const target of importsOf(file)) if (target.startsWith("packages/mcp/")) reached.add(target);
    expect(reached.size).toBeGreaterThan(8);
    expect([...reached].flatMap(importsOf).filter((target) => /^@x402|^viem\/accounts/.test(target))).toEqual([]);
  });
});

describe("the size of files", () => {
  test.each(SOURCES.filter((file) => !file.includes("/migrations/")))("%s has one subject", (file) => {
    const lines = readFileSync(join(ROOT, file), "utf8").split("\n").length;
    expect(lines).toBeLessThanOrEqual(file.startsWith("contracts/") ? 450 : 301);
  });
});
