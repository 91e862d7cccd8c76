import { randomBytes } from "node:crypto";
import type { RequestListener } from "node:http";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Witness } from "../../../api/platform/config/log-settings.ts";
import { toBase64 } from "../../../packages/verifier/src/encodings.ts";
import { formatCheckpoint } from "../../../packages/verifier/src/tlog/checkpoint.ts";
import { leafHash } from "../../../packages/verifier/src/tlog/hash.ts";
import { type NoteSigner, signNote } from "../../../packages/verifier/src/tlog/note.ts";
import { consistencyProof, rootHash } from "../../../packages/verifier/src/tlog/tree.ts";
import type { VerifierKey } from "../../../packages/verifier/src/tlog/verifier-key.ts";
import { type GuardedProcess, startGuarded } from "../../../scripts/embedded/guarded-process.ts";
import { freePort } from "../../../scripts/embedded/ports.ts";
import { openRecords } from "../../../scripts/witness/records.ts";
import { createWitnessServer } from "../../../scripts/witness/server.ts";
import { noteSigner } from "../../../scripts/witness/signer.ts";
import { forFile } from "../for-file.ts";
import { serveHttp } from "../http-server.ts";
import { bareEnvironment } from "../service/environment.ts";
import { waitUntil } from "../wait-until.ts";
import { MemoryTree } from "./memory-log.ts";

/** A log of texts in memory, with its own key. Logs whose entries begin alike are one log until they differ. */
export async function toyLog(origin: string, entries: readonly string[], seed = Buffer.alloc(32, 7)) {
  const signer = await noteSigner(origin, "log", seed);
  const tree = new MemoryTree();
  tree.append(entries.map((text) => leafHash(Buffer.from(text))));
  const checkpointAt = async (size: number) =>
    signNote(formatCheckpoint({ origin, size, root: await rootHash(size, tree.read) }), signer);
  const proof = (from: number, to: number) => consistencyProof(from, to, tree.read);
  return {
    signer,
    checkpointAt,
    proof,
    /** The body of `add-checkpoint`. */
    offer: async (from: number, to: number) => offerOf(from, await proof(from, to), await checkpointAt(to)),
  };
}

export const offerOf = (oldSize: number, proof: readonly Uint8Array[], checkpoint: string): string =>
  `old ${oldSize}\n${proof.map((hash) => `${toBase64(hash)}\n`).join("")}\n${checkpoint}`;

/** This number of entries. With `fork`, the entries from there on belong to another history. */
export const texts = (count: number, fork?: { readonly at: number }): readonly string[] =>
  Array.from({ length: count }, (_, index) => (fork && index >= fork.at ? `forked ${index}` : `entry ${index}`));

let made = 0;

/** A witness in this process, or another server in its place. */
export async function localWitness(
  log: VerifierKey,
  answer?: (signer: NoteSigner, honest: RequestListener) => RequestListener,
): Promise<{ readonly witness: Witness; readonly signer: NoteSigner }> {
  const signer = await noteSigner(`witness.example/w${++made}`, "witness", randomBytes(32));
  const records = openRecords(":memory:");
  const parts = { signer, records, logs: new Map([[log.name, [log]]]), now: () => new Date() };
  const server = createWitnessServer(parts, (error) => {
    throw error;
  });
  const honest: RequestListener = (request, response) => void server.emit("request", request, response);
  const { url } = await forFile(serveHttp(answer?.(signer, honest) ?? honest));
  return { witness: { key: signer.key, submission: url, monitoring: url }, signer };
}

const PROGRAM = fileURLToPath(new URL("../../../scripts/witness.ts", import.meta.url));
const STARTS_WITHIN_MS = 60_000;

/** `npm run witness` on a folder. It can be killed and started again. */
export async function witnessProcess(folder: string, name: string, logs: readonly string[]) {
  const port = await freePort();
  const seed = randomBytes(32);
  const { key } = await noteSigner(name, "witness", seed);
  const stateFile = join(folder, "witness.db");
  const env = {
    ...bareEnvironment(),
    WITNESS_NAME: name,
    WITNESS_KEY: seed.toString("base64url"),
    WITNESS_LOGS: logs.join(","),
    WITNESS_STATE: stateFile,
    WITNESS_PORT: String(port),
  };
  let child: GuardedProcess | null = null;
  return {
    url: `http://127.0.0.1:${port}`,
    vkey: key.vkey,
    stateFile,
    async start(): Promise<void> {
      const started = await startGuarded({ command: process.execPath, args: [PROGRAM], env });
      child = started;
      await waitUntil(() => started.lastOutput().includes("listens on") || !started.running(), STARTS_WITHIN_MS, 10);
      if (!started.running()) throw new Error(`The witness did not start. ${started.lastOutput()}`);
    },
    async kill(): Promise<void> {
      if (child?.running()) process.kill(child.pid, "SIGKILL");
      await child?.ended;
    },
    stop: async () => child?.stop(),
  };
}
