import { createHash, sign } from "node:crypto";
import type pg from "pg";
import type { Logger } from "pino";
import * as bands from "../../packages/verifier/src/score/bands.ts";
import { NOTE_TYPE, verifierKey } from "../../packages/verifier/src/tlog/verifier-key.ts";
import { POLICY_VERSIONS } from "../arbiter/policy/index.ts";
import type { ChainReader } from "../platform/chain/chain.ts";
import { elapsedMs } from "../platform/clock.ts";
import type { Config } from "../platform/config/config.ts";
import type { Relayer } from "../platform/relayer/relayer.ts";
import { jcs, type Signer } from "../platform/signing/document.ts";
import { type PublicJwk, signingKey } from "../platform/signing/keys.ts";
import { type Announced, createDocuments } from "./entry.ts";
import { createLog } from "./integrate.ts";
import { logOrigin } from "./log-paths.ts";
import { createLogPlaces } from "./log-section.ts";
import { createProveEntry, type PublicLog } from "./prove-entries.ts";
import type { LogCheckpoints } from "./served-checkpoint.ts";
import { createStaticLog } from "./static-routes.ts";
import { createLogStore, type LogStore } from "./store.ts";
import { wireLogWitnesses } from "./witness/wiring.ts";
import { createLogWriter } from "./write-store.ts";

export interface LogWires {
  readonly config: Pick<Config, "baseUrl" | "log">;
  readonly pool: pg.Pool;
  readonly signer: Signer;
  readonly publicKeys: readonly PublicJwk[];
  readonly chain: ChainReader;
  /** The arbiter's account, which anchors the log; null if it sends nothing. */
  readonly relayer: Relayer | null;
  readonly now: () => Date;
  readonly log: Logger;
}

/** The transparency log: its key and origin, its store, and the work that puts records into it. */
export async function wireLog({ config, pool, signer, publicKeys, chain, relayer, ...parts }: LogWires) {
  const { baseUrl } = config;
  const { generation } = config.log;
  const origin = config.log.origin ?? logOrigin(baseUrl, generation);
  const { privateKey, publicJwk } = await signingKey(config.log.key);
  const key = verifierKey(origin, NOTE_TYPE.ed25519, Buffer.from(publicJwk.x, "base64url"));
  const store = createLogStore(pool);
  const witnessing = wireLogWitnesses({ config, pool, chain, relayer, vkey: key.vkey, store, ...parts });
  const { checkpoints, heads, danger } = witnessing;
  const log = createLog({
    ...parts,
    heads,
    danger,
    generation,
    origin,
    vkey: key.vkey,
    signer: { key, sign: (message) => sign(null, message, privateKey) },
    store,
    writer: createLogWriter(pool),
    documentOf: createDocuments({ signer, baseUrl }),
    announced: announcements(baseUrl, publicKeys[0]),
    elapsedMs,
  });
  return {
    ...log,
    store,
    generation,
    origin,
    vkey: key.vkey,
    checkpoints,
    published: witnessing.jobs(log.distrust),
    facts: () => witnessing.facts(log.state()),
  };
}

const sha256 = (value: unknown): string => createHash("sha256").update(jcs(value)).digest("hex");

/** What the score computes with: its constants. */
const SCORE_RULES = Object.fromEntries(Object.entries(bands).filter(([, value]) => typeof value !== "function"));

/** What this release publishes by being started: policies, the version of the score, the key that signs. */
const announcements = (baseUrl: string, key: PublicJwk | undefined): readonly Announced[] => [
  ...POLICY_VERSIONS.map(({ policy }) => ({
    type: "policy" as const,
    ref: String(policy.version),
    members: {
      type: "PublishedPolicy",
      policy_version: policy.version,
      effective_date: policy.effective_date,
      policy_sha256: sha256(policy),
      url: `${baseUrl}/arbiter/policy`,
    },
  })),
  {
    type: "score_version",
    ref: String(bands.SCORE_VERSION),
    members: {
      type: "PublishedScoreVersion",
      score_version: bands.SCORE_VERSION,
      rules_sha256: sha256(SCORE_RULES),
      url: `${baseUrl}/docs`,
    },
  },
  ...(key === undefined ? [] : [{ type: "signing_key" as const, ref: key.kid, members: { type: "SigningKey", key } }]),
];

/** What everyone may read of the log. */
export function wirePublicLog(parts: {
  readonly generation: number;
  readonly store: LogStore;
  readonly checkpoints: LogCheckpoints;
}): PublicLog {
  const { store, checkpoints } = parts;
  return {
    ...parts,
    resources: createStaticLog(store),
    places: createLogPlaces(store, checkpoints),
    prove: createProveEntry({ store, checkpoints, elapsedMs: () => performance.now() }),
  };
}
