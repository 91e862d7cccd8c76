import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { expect, test } from "vitest";
import type * as Verifier from "../../../packages/verifier/src/index.ts";
import { launchBrowser } from "../../support/browser/browser.ts";
import { forFile } from "../../support/for-file.ts";
import { serveHttp } from "../../support/http-server.ts";
import { JWKS, SAMPLE_NOW, SIGNED_CREDENTIAL, STRANGER } from "./samples.ts";

const LIBRARY = fileURLToPath(new URL("../../../packages/verifier/src/index.ts", import.meta.url));

const bundle = await build({
  entryPoints: [LIBRARY],
  bundle: true,
  write: false,
  format: "iife",
  globalName: "verifier",
  platform: "browser",
});
const answers: Readonly<Record<string, readonly [string, string]>> = {
  "/": ["text/html", '<!doctype html><title>A page</title><script src="/verifier.js"></script>'],
  "/verifier.js": ["text/javascript", bundle.outputFiles[0]?.text ?? ""],
  "/.well-known/jwks.json": ["application/json", JSON.stringify(JWKS)],
};
const { url: origin } = await forFile(
  serveHttp(({ url = "" }, response) => {
    const [type, body] = answers[url] ?? ["text/plain", ""];
    response.writeHead(body === "" ? 404 : 200, { "content-type": type }).end(body);
  }, "localhost"),
);
const browser = await forFile(launchBrowser());
const page = await browser.newPage();

declare const verifier: typeof Verifier;

/** Verifies in the page, with keys that the page fetches. */
const verifyInPage = (text: string, keys: string) =>
  page.evaluate(
    async ({ text, keys, at }) => {
      const found = keys.startsWith("http") ? new TextDecoder().decode(await verifier.fetchText(keys)) : keys;
      const expected = { keys: await verifier.parseKeySet(found), issuer: "https://trust.example", at: new Date(at) };
      const { document: _, ...report } = await verifier.verifyDocument(text, expected);
      return report;
    },
    { text, keys, at: SAMPLE_NOW.toISOString() },
  );

test("The library verifies in a real browser with the browser's own cryptography", async () => {
  const errors: string[] = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  await page.goto(origin);
  const text = JSON.stringify(SIGNED_CREDENTIAL);
  expect(await verifyInPage(text, `${origin}/.well-known/jwks.json`)).toMatchObject({
    valid: true,
    signature: { valid: true, issuer: "did:web:trust.example" },
    freshness: { state: "current" },
  });
  const changed = text.replace('"tested":true', '"tested":false');
  const refusals = [
    await verifyInPage(changed, JSON.stringify(JWKS)),
    await verifyInPage(text, JSON.stringify({ keys: [STRANGER.publicJwk] })),
    await verifyInPage(
      text.replace('"created":"2026-11-24T12:00:00', '"created":"2026-11-24T12:00:01'),
      JSON.stringify(JWKS),
    ),
  ];
  expect(refusals.map(({ signature }) => (signature.valid ? "valid" : signature.code))).toEqual([
    "jws_mismatch",
    "unknown_key",
    "proof_value_mismatch",
  ]);
  expect(errors).toEqual([]);
});
