import { describe, expect, test } from "vitest";
import { codeOf, importsOf, reachedFrom, SOURCES, textOf } from "./sources.ts";

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
    const outside = importsOf(file).filter((target) => own.test(target) && !target.startsWith(`packages/${name}/`));
    // The tarballs have the verifier compiled into them; the action has these folders beside it.
    const shared = ["mcp", "seller-check", "action"].includes(name ?? "") ? ["packages/verifier/src/index.ts"] : [];
    const beside = name === "action" ? ["packages/seller-check/src/index.ts"] : [];
    expect(outside.filter((target) => ![...shared, ...beside].includes(target))).toEqual([]);
  });

  test.each(ofVerifier)(
    "%s depends on jose, canonicalize and @noble/hashes; only the command line on Node, only what recovers signers on viem",
    (file) => {
      const outside = importsOf(file).filter((target) => !target.startsWith("packages/"));
      const more = isCommandLine(file) ? "|node:.+" : /\/(fail-proof|typed-data)\.ts$/.test(file) ? "|viem" : "";
      const allowed = new RegExp(`^(jose|canonicalize|@noble/hashes/sha2\\.js${more})$`);
      expect(outside.filter((target) => !allowed.test(target))).toEqual([]);
      if (!isCommandLine(file)) {
        expect(importsOf(file).filter(isCommandLine)).toEqual([]);
        expect(codeOf(file)).not.toMatch(/\b(process|Buffer)\./);
      }
    },
  );

  // Parts of the adapter for Express, whose requests and responses are Node's own. `capture.ts` also takes text in any of
  // Node's encodings, which only `Buffer` knows; the stand-in for a buyer's connection in `connection.ts` is a socket.
  const EXPRESS_PARTS: Readonly<Record<string, { readonly imports: string; readonly globals: RegExp }>> = {
    "packages/escrow/src/capture.ts": { imports: "|node:http", globals: /\bprocess\./ },
    "packages/escrow/src/connection.ts": { imports: "|node:(http|net)", globals: /\b(process|Buffer)\./ },
  };

  test.each(ofEscrow)(
    "%s depends on viem, an adapter on its framework's types; only the command line and the parts for Express on Node",
    (file) => {
      const outside = importsOf(file).filter((target) => !target.startsWith("packages/"));
      const adapted = /\/(hono|express)\.ts$/.exec(file)?.[1];
      const part = EXPRESS_PARTS[file];
      const framework = part?.imports ?? { hono: "|hono", express: "|node:http" }[adapted ?? ""] ?? "";
      const library = new RegExp(`^(viem(/actions)?${framework})$`);
      const allowed = isCommandLine(file) ? /^(viem(\/(accounts|actions))?|node:.+)$/ : library;
      expect(outside.filter((target) => !allowed.test(target))).toEqual([]);
      if (adapted !== undefined) expect(textOf(file)).not.toMatch(/^import (?!type )[^;]*"(hono|node:)/m);
      if (part !== undefined) expect(textOf(file)).not.toMatch(/^import (?!type )[^;]*"node:http"/m);
      if (!isCommandLine(file)) {
        expect(importsOf(file).filter(isCommandLine)).toEqual([]);
        expect(codeOf(file)).not.toMatch(part?.globals ?? /\b(process|Buffer)\./);
      }
    },
  );

  test("what sells in Hono, in Next and by itself reaches no part for Express, however far its imports are followed", () => {
    const entries = ["index", "hono", "next"].map((name) => `packages/escrow/src/${name}.ts`);
    const reached = reachedFrom(entries, "packages/escrow/");
    expect(reached.size).toBeGreaterThan(30);
    expect(Object.keys(EXPRESS_PARTS).filter((file) => reached.has(file))).toEqual([]);
    expect(Object.keys(EXPRESS_PARTS).every((file) => ofEscrow.includes(file))).toBe(true);
  });

  const keepsPayments = /\/(pending-payments|state-folder)\.ts$/;

  test.each(ofMcp)("%s depends on its few packages; only the command line on stdio and the environment", (file) => {
    const outside = importsOf(file).filter((target) => !target.startsWith("packages/"));
    const allowed =
      /^(zod|viem(\/(accounts|siwe))?|canonicalize|@modelcontextprotocol\/server(\/stdio)?|@x402\/(fetch|evm\/exact\/client)|node:crypto)$/;
    const files = keepsPayments.test(file)
      ? /^node:(fs\/promises|os|path|timers\/promises)$/
      : isCommandLine(file)
        ? /^node:fs$/
        : /^$/;
    expect(outside.filter((target) => !allowed.test(target) && !files.test(target))).toEqual([]);
    if (!isCommandLine(file)) {
      expect(importsOf(file).filter(isCommandLine)).toEqual([]);
      expect(outside.filter((target) => /stdio$/.test(target))).toEqual([]);
      expect(codeOf(file)).not.toMatch(/\b(process|Buffer)\./);
    }
  });

  test("what the service serves at /mcp reaches no code that signs, however far its imports are followed", () => {
    const served = ["packages/mcp/src/free-server.ts", "packages/mcp/src/tools/free.ts"];
    const reached = reachedFrom(served, "packages/mcp/");
    expect(reached.size).toBeGreaterThan(8);
    expect([...reached].flatMap(importsOf).filter((target) => /^@x402|^viem\/accounts|^node:fs/.test(target))).toEqual(
      [],
    );
  });
});
