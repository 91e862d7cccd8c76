import { createSigner } from "../../../../api/signing/document.ts";
import { jcs } from "../../../../packages/verifier/src/jcs.ts";
import type { Json } from "../../../../packages/verifier/src/strict-json.ts";
import { documentSha256 } from "../../../../packages/verifier/src/tlog/entry.ts";
import { FolderLog } from "../../../support/log/log-folder.ts";
import { noteSigner, witnessSigner } from "../../../support/log/note-keys.ts";
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
/** A document that the service has signed, or somebody else. */
export const sign = (members: object, key = KEY) =>
  createSigner(key, ISSUER).sign({ "@context": CONTEXT, issuer: ISSUER, ...members }, SAMPLE_NOW);
const certificate = sign({ type: "IssuedCertificate", ...RECORD });
export const entry = (index: number, change: object = {}, document: object = certificate) =>
  Buffer.from(jcs({ document, id: "c1", index, type: "certificate", version: 1, ...change } as Json));

export const verdict = (index: number, previous: string | null) =>
  sign({ type: "Verdict", log: { index, previous_sha256: previous } });
const first = verdict(1, null);
/** A log of certificates; verdicts stand at 3 and 4. */
export const usual = (index: number) =>
  index === 3
    ? entry(index, { type: "verdict", id: "v1" }, first)
    : index === 4
      ? entry(index, { type: "verdict", id: "v2" }, verdict(2, documentSha256(first as never)))
      : entry(index);
export const logOf = (size: number, change: Readonly<Record<number, Buffer>> = {}) => {
  const log = new FolderLog(signer, witness);
  log.append(...Array.from({ length: size }, (_, at) => change[at] ?? usual(at)));
  return log;
};
