import { mkdtemp, readFile, writeFile } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { keyUrl } from "../../../../api/platform/signing/did.ts";
import { jcs } from "../../../../packages/verifier/src/jcs.ts";
import type { Json } from "../../../../packages/verifier/src/strict-json.ts";
import { serveHttp } from "../../../support/http-server.ts";
import { FolderLog, noteSigner, witnessSigner } from "../../../support/log/memory-log.ts";
import { forge } from "../forge.ts";
import { ISSUER, KEY, SAMPLE_NOW } from "../samples.ts";

export const signer = noteSigner("trust.example/log", 1);
export const witness = witnessSigner("witness.example/w", 2);

export const RECORD = {
  id: "c1",
  product: "retry",
  verdict: "pass",
  wallet: "0x1",
  issued_at: SAMPLE_NOW.toISOString(),
};
const CONTEXT = ["https://www.w3.org/ns/credentials/undefined-terms/v2"];
/** A document signed by the service or by another key. */
export const sign = (members: object, key = KEY) =>
  forge({
    document: { "@context": CONTEXT, issuer: ISSUER, ...members },
    header: { alg: "EdDSA", kid: key.publicJwk.kid },
    options: { "@context": CONTEXT, verificationMethod: keyUrl(ISSUER, key.publicJwk) },
    jwsKey: key,
    valueKey: key,
  });
const logged = sign({ type: "IssuedCertificate", ...RECORD });
export const entry = (index: number, change: object = {}, document: object = logged) =>
  Buffer.from(jcs({ document, id: "c1", index, type: "certificate", version: 1, ...change } as Json));

const verdict = sign({ type: "Verdict" });
/** An entry of a log of certificates, with a verdict at index 3. */
export const usual = (index: number) =>
  index === 3 ? entry(index, { type: "verdict", id: "v1" }, verdict) : entry(index);
export const logOf = (size: number, change: Readonly<Record<number, Buffer>> = {}) => {
  const log = new FolderLog(signer, witness);
  log.append(...Array.from({ length: size }, (_, at) => change[at] ?? usual(at)));
  return log;
};

export const WALLET = `0x${"a1".repeat(20)}`;

const VALID_UNTIL = "2099-01-01T00:00:00.000Z";
/** A certificate of `WALLET` at this index, a retry PASS unless the change overrides it. */
export const certificate = (index: number, change: object = {}, key = KEY) => {
  const members = { ...RECORD, id: `cert-${index}`, wallet: WALLET, valid_until: VALID_UNTIL, ...change };
  return entry(index, { id: members.id }, sign({ type: "IssuedCertificate", ...members }, key));
};
export const reversal = (index: number, id: string) =>
  entry(index, { type: "reversal", id }, sign({ type: "ReversedCertificate", certificate: id }));
/** The certificate as a wallet's record lists it. */
export const listed = (at: number, result = "pass", change: object = {}) => ({
  ...{ id: `cert-${at}`, product: RECORD.product, result, issued: RECORD.issued_at, valid_until: VALID_UNTIL },
  ...{ fresh: true, ...change },
});

/** Files for a command that trusts the log and its one witness. Returns the options that name them. */
export async function trustIn(folder: string): Promise<readonly string[]> {
  const [policy, jwks] = [join(folder, "policy.txt"), join(folder, "jwks.json")];
  await writeFile(policy, `log ${signer.key.vkey}\nwitness w ${witness.key.vkey}\nquorum w\n`);
  await writeFile(jwks, JSON.stringify({ keys: [KEY.publicJwk] }));
  return ["--policy", policy, "--jwks", jwks, "--issuer", ISSUER];
}

/** A log, or any responses in its place: true if it responds to this path. */
export type Face = FolderLog | ((path: string, response: ServerResponse) => boolean);

/** Serves the files of a log until the test ends. A later face overrides earlier ones. */
export async function serveLog(folder: string, ...faces: Face[]) {
  const folders = new Map<FolderLog, string>();
  const { url, stop } = await serveHttp(async ({ url: asked = "" }, response) => {
    const path = asked.slice(1);
    for (const face of faces.toReversed()) {
      if (typeof face === "function") {
        if (face(path, response)) return;
        continue;
      }
      const at = folders.get(face) ?? (await mkdtemp(join(folder, "log-")));
      if (!folders.has(face)) await face.write(at);
      folders.set(face, at);
      await readFile(join(at, path)).then(
        (bytes) => void response.end(bytes),
        () => void response.writeHead(404).end(),
      );
      return;
    }
  });
  onTestFinished(stop);
  return { url, show: (face: Face) => void faces.push(face) };
}
