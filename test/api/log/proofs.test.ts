import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createDocuments, entryBytes } from "../../../api/log/entry.ts";
import { createProveEntry } from "../../../api/log/prove-entries.ts";
import { createSigner, jcs } from "../../../api/platform/signing/document.ts";
import { signingKey } from "../../../api/platform/signing/keys.ts";
import { parseEntry } from "../../../packages/verifier/src/tlog/entry.ts";
import { leafHash } from "../../../packages/verifier/src/tlog/hash.ts";
import { MAX_ENTRY_BYTES } from "../../../packages/verifier/src/tlog/tile.ts";
import { buyVerdict, startArbiterScene } from "../../support/arbiter/scene.ts";
import { folderForFile, forFile } from "../../support/for-file.ts";
import { MemoryTree, readProof } from "../../support/log/memory-log.ts";
import { post, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";

const CLI = fileURLToPath(new URL("../../../packages/verifier/src/cli.ts", import.meta.url));
const PATIENT = { timeout: 30_000, interval: 100 } as const;

const scene = await forFile(startArbiterScene());
const folder = await folderForFile("log-journey-");
const { url } = scene.service;
const payer = await newPayer(scene.chain);

const save = async (name: string, path: string): Promise<string> => {
  const answer = await fetch(url + path);
  expect([path, answer.status]).toEqual([path, 200]);
  const file = join(folder, name);
  await writeFile(file, await answer.text());
  return file;
};

/** Saves the proof of a record as soon as it exists. */
async function proofOf(name: string, record: string): Promise<string> {
  await expect.poll(async () => (await fetch(`${url}${record}.tlog-proof`)).status, PATIENT).toBe(200);
  return save(name, `${record}.tlog-proof`);
}

/** Verifies a record offline, with files only. */
async function check(record: string, proof: string): Promise<{ readonly code: number; readonly said: string }> {
  const files = ["--proof", proof, "--policy", join(folder, "policy.txt")];
  const trust = ["--issuer", `did:web:${new URL(url).host.replace(":", "%3A")}`, "--jwks", join(folder, "jwks.json")];
  return promisify(execFile)(process.execPath, [CLI, "log", record, ...files, ...trust]).then(
    ({ stdout }) => ({ code: 0, said: stdout }),
    ({ code, stdout, stderr }) => ({ code, said: `${stdout}${stderr}` }),
  );
}

async function keepPolicy(): Promise<void> {
  await save("jwks.json", "/.well-known/jwks.json");
  const { policy } = (await (await fetch(`${url}/log`)).json()) as { policy: string };
  await writeFile(join(folder, "policy.txt"), policy);
}

test("A bought certificate is proven offline to be in the log", async () => {
  const { body } = await post(`${url}/test/basic`, v2(await signPayment(payer)));
  const path = new URL(String(body.cert_url)).pathname;
  const proof = await proofOf("certificate.tlog-proof", path);
  await keepPolicy();
  const record = await save("certificate.json", path);
  expect(await check(record, proof)).toMatchObject({ code: 0 });
  const document = JSON.parse(await readFile(record, "utf8")) as Record<string, unknown>;
  expect(document.log).toEqual([
    expect.objectContaining({ type: "certificate", proof_url: `${url}${path}.tlog-proof` }),
  ]);
  const forged = join(folder, "forged.json");
  await writeFile(forged, JSON.stringify({ ...document, wallet: `0x${"11".repeat(20)}` }));
  expect(await check(forged, proof)).toMatchObject({ code: 1 });
});

test("A verdict has a proof, and its Link header names the index", async () => {
  const claim = scene.claims[0];
  if (claim === undefined) throw new Error("the scene has no claim");
  const { category, conditions } = claim;
  const { answer } = await buyVerdict(scene.service, payer, { category, conditions });
  const path = new URL(String(answer.body.verdict_url)).pathname;
  const proof = await proofOf("verdict.tlog-proof", path);
  await keepPolicy();
  const record = await save("verdict.json", path);
  expect(await check(record, proof)).toMatchObject({ code: 0 });
  const { headers } = await fetch(url + path);
  const index = /^index (\d+)$/m.exec(await readFile(proof, "utf8"))?.[1];
  expect(headers.get("link")).toContain(`<${path}.tlog-proof>; rel="https://c2sp.org/tlog-proof"; index="${index}"`);
  // Another record's proof does not prove this one.
  expect(await check(record, join(folder, "certificate.tlog-proof"))).toMatchObject({ code: 1 });
});

test("A checkpoint that is too small for the entry is not used", async () => {
  const tree = new MemoryTree();
  tree.append(Array.from({ length: 300 }, (_, at) => leafHash(Buffer.of(at >> 8, at & 255))));
  const store = { tiles: async (_: number, ids: Parameters<typeof tree.read>[0]) => tree.read(ids) };
  const note = "log\n300\nroot\n\n\u2014 log AAAA\n";
  const entryAt = (index: number) =>
    ({ type: "certificate", ref: "", generation: 1, index, entry: Buffer.of(1), at: new Date(0) }) as const;
  /** Proves with checkpoints of these sizes, which are read one after another. */
  const prover = (...sizes: number[]) => {
    const proving = async () => ({ size: sizes.shift() ?? 0, root: tree.root, note, at: new Date(0) });
    return createProveEntry({ store, checkpoints: { proving, quorum: 0 }, elapsedMs: () => 0 });
  };
  const prove = prover(150, 300);
  for (const index of [100, 200]) expect(readProof(await prove(entryAt(index)))).toMatchObject({ index });
  await expect(prover(200)(entryAt(200))).rejects.toThrow("no checkpoint covers entry 200");
});

describe("bytes of an entry", async () => {
  const signer = createSigner(await signingKey(Buffer.alloc(32, 8)), "did:web:trust.example");
  const documentOf = createDocuments({ signer, baseUrl: "https://trust.example" });
  const proof = (document: unknown) =>
    documentOf({
      type: "proof",
      ref: "00000000000000a1",
      at: new Date(0),
      recorded: { type: "proof", document, publishedAt: new Date(0) },
    });

  // Characters that programs read differently, break lines at, or cannot store.
  const CHARACTERS = [
    "a",
    "\u0000",
    "\u001f",
    "\u007f",
    "\u2028",
    "\u2029",
    "\ufeff",
    "\u202e",
    "é",
    "e\u0301",
    "😀",
    "\uffff",
  ];
  const TEXT = fc.string({ unit: fc.constantFrom(...CHARACTERS, '"', "\\") });
  /** Never a backslash, because after one V8's `JSON.parse` mistakes every escaped name for it. */
  const NAME = fc.string({ unit: fc.constantFrom(...CHARACTERS) });
  const NUMBER = fc.oneof(
    fc.maxSafeInteger(),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.constantFrom(2 ** 53, -(2 ** 53), 1e21, 5e-324, -0),
  );
  const VALUE = fc.oneof(TEXT, NUMBER, fc.boolean(), fc.constant(null));
  const DOCUMENT = fc.dictionary(NAME, fc.oneof(VALUE, fc.array(VALUE), fc.dictionary(NAME, VALUE)), {
    noNullPrototype: true,
  });

  test("An entry is read back as written, whatever characters and numbers its document contains", async () => {
    const property = fc.asyncProperty(DOCUMENT, fc.nat(), async (document, index) => {
      const content = await proof(document);
      const bytes = entryBytes(content, index);
      const entry = parseEntry(bytes);
      expect(entry).toMatchObject({ index, type: "proof", id: content.id });
      expect("document" in entry.content && jcs(entry.content.document)).toBe(content.document);
      expect(bytes.includes("\n")).toBe(false);
    });
    await fc.assert(property, { numRuns: 200 });
  });

  test.each([{ a: "\ud800" }, { "\udc00": 1 }, [["\ud83d"]]])(
    "No entry is made of %j, which has no UTF-8 form",
    async (document) => {
      await expect(proof(document)).rejects.toThrow(/urrogate/);
    },
  );

  test("An entry is at most as long as a bundle's 16-bit length allows", () => {
    const of = (length: number) => ({
      type: "policy" as const,
      id: "1",
      document: `"${"x".repeat(length)}"`,
      url: null,
    });
    const rest = entryBytes(of(0), 0).length;
    expect(entryBytes(of(MAX_ENTRY_BYTES - rest), 0)).toHaveLength(MAX_ENTRY_BYTES);
    expect(() => entryBytes(of(MAX_ENTRY_BYTES - rest + 1), 0)).toThrow(/has 65536 bytes, more than 65535/);
  });
});
