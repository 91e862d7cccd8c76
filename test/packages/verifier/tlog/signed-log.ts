import { keyUrl } from "../../../../api/platform/signing/did.ts";
import { jcs } from "../../../../packages/verifier/src/jcs.ts";
import type { Json } from "../../../../packages/verifier/src/strict-json.ts";
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
/** A document that the service has signed, or somebody else. */
export const sign = (members: object, key = KEY) =>
  forge({
    document: { "@context": CONTEXT, issuer: ISSUER, ...members },
    header: { alg: "EdDSA", kid: key.publicJwk.kid },
    options: { "@context": CONTEXT, verificationMethod: keyUrl(ISSUER, key.publicJwk) },
    jwsKey: key,
    valueKey: key,
  });
const certificate = sign({ type: "IssuedCertificate", ...RECORD });
export const entry = (index: number, change: object = {}, document: object = certificate) =>
  Buffer.from(jcs({ document, id: "c1", index, type: "certificate", version: 1, ...change } as Json));

const verdict = sign({ type: "Verdict" });
/** A log of certificates; a verdict stands at 3. */
export const usual = (index: number) =>
  index === 3 ? entry(index, { type: "verdict", id: "v1" }, verdict) : entry(index);
export const logOf = (size: number, change: Readonly<Record<number, Buffer>> = {}) => {
  const log = new FolderLog(signer, witness);
  log.append(...Array.from({ length: size }, (_, at) => change[at] ?? usual(at)));
  return log;
};
