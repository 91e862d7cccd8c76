import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { buyVerdict, startArbiterScene } from "../../support/arbiter/scene.ts";
import { folderForFile, forFile } from "../../support/for-file.ts";
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

/** The proof of a record, once it has its place in the log. */
async function proofOf(name: string, record: string): Promise<string> {
  await expect.poll(async () => (await fetch(`${url}${record}.tlog-proof`)).status, PATIENT).toBe(200);
  return save(name, `${record}.tlog-proof`);
}

/** Checks with files alone. */
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

test("a certificate that was bought is proven to be in the log, offline", async () => {
  const { body } = await post(`${url}/test/basic`, v2(await signPayment(payer, { value: 250_000n })));
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

test("a verdict has a proof, too, and names its index beside its bytes", async () => {
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
  // Another record's proof proves nothing here.
  expect(await check(record, join(folder, "certificate.tlog-proof"))).toMatchObject({ code: 1 });
});
