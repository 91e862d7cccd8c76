import { randomBytes } from "node:crypto";
import type { RequestListener } from "node:http";
import type { WitnessPolicy } from "../../../api/platform/config/log-settings.ts";
import type { NoteSigner } from "../../../packages/verifier/src/tlog/note.ts";
import type { VerifierKey } from "../../../packages/verifier/src/tlog/verifier-key.ts";
import { openRecords, type Records } from "../../../scripts/witness/records.ts";
import { createWitnessServer } from "../../../scripts/witness/server.ts";
import { noteSigner } from "../../../scripts/witness/signer.ts";
import { forFile } from "../for-file.ts";
import { serveHttp } from "../http-server.ts";

export interface LocalWitness {
  readonly witness: WitnessPolicy["witnesses"][number];
  readonly signer: NoteSigner;
  readonly records: Records;
}

let made = 0;

/** A witness in this process, or whatever answers in its place. */
export async function localWitness(
  log: VerifierKey,
  answer?: (signer: NoteSigner, honest: RequestListener) => RequestListener,
): Promise<LocalWitness> {
  const signer = await noteSigner(`witness.example/w${++made}`, "witness", randomBytes(32));
  const records = openRecords(":memory:");
  const parts = { signer, records, logs: new Map([[log.name, [log]]]), now: () => new Date() };
  const server = createWitnessServer(parts, (error) => {
    throw error;
  });
  const honest: RequestListener = (request, response) => void server.emit("request", request, response);
  const { url } = await forFile(serveHttp(answer?.(signer, honest) ?? honest));
  return { witness: { key: signer.key, submission: url, monitoring: url }, signer, records };
}
