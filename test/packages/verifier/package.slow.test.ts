import { execFile } from "node:child_process";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { scoreDocument } from "../../../packages/verifier/src/score/score.ts";
import { folderForFile } from "../../support/for-file.ts";
import { packInto } from "../../support/packages/registry.ts";
import { JWKS, SAMPLE_NOW, SIGNED_CREDENTIAL } from "./samples.ts";
import { ALL_PASSES, facts } from "./score/facts.ts";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const NAME = "agent-payment-trust-verifier";
const DEPENDENCIES = ["@noble/hashes", "canonicalize", "jose"];
/** This project's folders of the versions that the package requires. */
const FOLDERS = ["@noble/hashes", "canonicalize-4", "jose"];
const call = promisify(execFile);

/** A folder outside the project that contains only what a user would have: the installed package and a document. */
const home = await folderForFile("verifier-package-");
const npm = (...args: string[]) => call("npm", args, { cwd: home });
await packInto(home, "verifier");
// The dependencies are linked from this project's node_modules, so no registry is needed.
const dependencies = FOLDERS.map((name) => join(ROOT, "node_modules", name));
await npm("pack", "--ignore-scripts", "--pack-destination", home, ...dependencies);
const packed = (await readdir(home)).filter((name) => name.endsWith(".tgz"));
await writeFile(join(home, "package.json"), '{"type":"module"}');
await npm("install", "--offline", "--no-audit", "--no-fund", ...packed.map((name) => `./${name}`));
await writeFile(join(home, "credential.json"), JSON.stringify(SIGNED_CREDENTIAL));
await writeFile(join(home, "jwks.json"), JSON.stringify(JWKS));

const AT = ["--jwks", "jwks.json", "--at", SAMPLE_NOW.toISOString()];
const npx = (...args: string[]) => call("npx", ["--no-install", NAME, ...args], { cwd: home });

test("The packed tarball is JavaScript with declarations and needs only three small packages", async () => {
  expect(packed).toHaveLength(1 + DEPENDENCIES.length);
  const installed = join(home, "node_modules", NAME);
  const files = (await readdir(installed, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile());
  expect(files.map(({ name }) => name)).toEqual(expect.arrayContaining(["index.js", "index.d.ts", "cli.js"]));
  expect(
    files
      .filter(({ name }) => !/\.(js|d\.ts)$/.test(name))
      .map(({ name }) => name)
      .sort(),
  ).toEqual(["LICENSE", "README.md", "package.json"]);
  const { dependencies } = JSON.parse(await readFile(join(installed, "package.json"), "utf8"));
  expect(Object.keys(dependencies).sort()).toEqual(DEPENDENCIES);
  const modules = (await readdir(join(home, "node_modules"))).filter((name) => !name.startsWith("."));
  expect(modules.sort()).toEqual(["@noble", NAME, "canonicalize", "jose"]);
});

test("In an empty folder, npx exits with 0 for a valid credential", async () => {
  expect((await npx("credential.json", ...AT)).stdout).toMatch(/^valid, not verified: FAIL in scam\n/);
});

test("In an empty folder, npx exits with 1 for a changed credential and with 2 for wrong usage", async () => {
  await writeFile(join(home, "changed.json"), JSON.stringify({ ...SIGNED_CREDENTIAL, id: "https://trust.example/" }));
  await expect(npx("changed.json", ...AT)).rejects.toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/jws_mismatch/),
  });
  await expect(npx("proof", "credential.json")).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/npm install viem/),
  });
  await expect(npx("credential.json")).rejects.toMatchObject({ code: 2, stderr: expect.stringMatching(/--issuer/) });
});

test("In an empty folder, npx replays a risk score and exits with 0, or with 1 for another score", async () => {
  const document = await scoreDocument(facts({}, ALL_PASSES));
  await writeFile(join(home, "score.json"), JSON.stringify(document));
  expect((await npx("score", "score.json")).stdout).toMatch(/^same: /);
  await writeFile(join(home, "raised.json"), JSON.stringify({ ...document, score: 100 }));
  await expect(npx("score", "raised.json")).rejects.toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/"score": the record has 100/),
  });
});

test("A TypeScript program finds its types", async () => {
  const program = (type: string) => `import { parseKeySet, verifyDocument } from "${NAME}";
const report = await verifyDocument("{}", { keys: await parseKeySet('{"keys":[]}'), issuer: "https://trust.example" });
export const valid: ${type} = report.valid;\n`;
  const options = ["--noEmit", "--strict", "--module", "nodenext", "--target", "es2024", "--lib", "es2024,dom"];
  const check = async (type: string) => {
    await writeFile(join(home, `${type}.ts`), program(type));
    return call(join(ROOT, "node_modules/.bin/tsc"), [...options, `${type}.ts`], { cwd: home });
  };
  await check("boolean");
  await expect(check("number")).rejects.toMatchObject({
    stdout: expect.stringMatching(/'boolean' is not assignable to type 'number'/),
  });
});
