import { sign } from "node:crypto";
import type pg from "pg";
import { certificateEntries } from "../../../api/certificates/entries-store.ts";
import { createDocuments } from "../../../api/log/entry.ts";
import { createLog, type LogParts } from "../../../api/log/integrate.ts";
import { logOrigin } from "../../../api/log/log-paths.ts";
import { createLogStore } from "../../../api/log/store.ts";
import { createLogWriter } from "../../../api/log/write-store.ts";
import { createSigner } from "../../../api/platform/signing/document.ts";
import { signingKey } from "../../../api/platform/signing/keys.ts";
import { sellerEntries } from "../../../api/sellers/published/entries-store.ts";
import { NOTE_TYPE, verifierKey } from "../../../packages/verifier/src/tlog/verifier-key.ts";

const ENTRIES = { ...certificateEntries, ...sellerEntries };

const BASE_URL = "https://trust.example";

/** Anything about the log that a test decides. Its clock stands still unless the test moves it. */
export type LogPlan = Partial<
  Pick<LogParts, "generation" | "heads" | "danger" | "elapsedMs" | "announced" | "writer">
> & {
  /** Of 32 equal bytes. */
  readonly key?: number;
  /** Default https://trust.example. */
  readonly baseUrl?: string;
  /** As LOG_ORIGIN names it. */
  readonly origin?: string;
};

/** The log's writer on a database, as a process of the service has it. */
export async function logOn(pool: pg.Pool, { generation = 1, key = 7, baseUrl = BASE_URL, ...plan }: LogPlan = {}) {
  const origin = plan.origin ?? logOrigin(baseUrl, generation);
  const own = await signingKey(Buffer.alloc(32, key));
  const verifier = verifierKey(origin, NOTE_TYPE.ed25519, Buffer.from(own.publicJwk.x, "base64url"));
  const signer = createSigner(await signingKey(Buffer.alloc(32, 8)), "did:web:trust.example");
  const announced = plan.announced ?? [];
  const store = createLogStore(pool);
  const errors: string[] = [];
  const log = createLog({
    heads: { sources: 0, ask: async () => ({ heads: [], silent: [] }) },
    danger: async () => null,
    elapsedMs: () => 0,
    writer: createLogWriter(pool, ENTRIES),
    ...plan,
    announced,
    generation,
    origin,
    vkey: verifier.vkey,
    signer: { key: verifier, sign: (message) => sign(null, message, own.privateKey) },
    store,
    documentOf: createDocuments({ signer, baseUrl }),
    now: () => new Date(),
    log: { info: () => undefined, error: (facts, message) => errors.push(`${message} ${JSON.stringify(facts)}`) },
  });
  return { ...log, store, origin, verifier, errors };
}

/** As if the newest checkpoint were old: another one may be signed at once. */
export const CHECKPOINTS_AGE = `ALTER TABLE log_checkpoint DISABLE TRIGGER permanent;
  UPDATE log_checkpoint SET at = at - interval '2 s';
  ALTER TABLE log_checkpoint ENABLE ALWAYS TRIGGER permanent`;
