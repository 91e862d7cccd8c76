import { createHash, sign } from "node:crypto";
import * as bands from "../../packages/verifier/src/score/bands.ts";
import { NOTE_TYPE, verifierKey } from "../../packages/verifier/src/tlog/verifier-key.ts";
import { elapsedMs } from "../platform/clock.ts";
import type { Config } from "../platform/config/config.ts";
import type { Listed } from "../platform/http/route.ts";
import { MAIN_NETWORK } from "../platform/networks.ts";
import type { Relayer } from "../platform/relayer/relayer.ts";
import { jcs } from "../platform/signing/document.ts";
import { type PublicJwk, signingKey } from "../platform/signing/keys.ts";
import { type Job, type Platform, under } from "../platform/slice.ts";
import { type Announced, createDocuments } from "./entry.ts";
import { createLog } from "./integrate.ts";
import { logOrigin } from "./log-paths.ts";
import { createLogPlaces } from "./log-section.ts";
import { type ProofRouteParts, proofRoutes } from "./proof-routes.ts";
import { createProveEntry, type PublicLog } from "./prove-entries.ts";
import { logRoutes } from "./routes.ts";
import { createStaticLog } from "./static-routes.ts";
import { createLogStore } from "./store.ts";
import { createWitnessing } from "./witness/index.ts";
import { createLogWriter, type EntryReaders } from "./write-store.ts";

export { placeDocument } from "./log-overview.ts";
export {
  CERTIFICATE_ENTRIES,
  checkCommands,
  EVALUATION_ENTRIES,
  followCommands,
  linkProof,
  VERDICT_ENTRIES,
} from "./log-paths.ts";
export { type LogPlace, logSection } from "./log-section.ts";
export type { PublicLog } from "./prove-entries.ts";
export { LOG_PLACE } from "./schemas.ts";
export type { LogFacts } from "./witness/index.ts";
export type { EntryReaders } from "./write-store.ts";

interface LogNeeds {
  /** The arbiter's account, which anchors the log; null if it sends no transactions. */
  readonly relayer: Relayer | null;
  /** Read records of other slices. */
  readonly readers: EntryReaders;
  /** The arbiter's policies, which are entries of the log. */
  readonly policies: readonly { readonly version: number; readonly effective_date: string }[];
}

/** Creates the transparency log: its key and origin, its store, its routes, and the jobs that add records to it. */
export async function createTransparencyLog(
  platform: Platform,
  config: Config,
  { relayer, policies, readers }: LogNeeds,
) {
  const {
    pool,
    keys: { signer, published: publicKeys },
    now,
    log: logger,
  } = platform;
  const chain = platform.chains[MAIN_NETWORK];
  const parts = { now, log: logger };
  const { baseUrl } = config;
  const { generation } = config.log;
  const origin = config.log.origin ?? logOrigin(baseUrl, generation);
  const { privateKey, publicJwk } = await signingKey(config.log.key);
  const key = verifierKey(origin, NOTE_TYPE.ed25519, Buffer.from(publicJwk.x, "base64url"));
  const store = createLogStore(pool);
  const witnessing = createWitnessing({ config, pool, chain, relayer, vkey: key.vkey, store, ...parts });
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
    writer: createLogWriter(pool, readers),
    documentOf: createDocuments({ signer, baseUrl }),
    announced: announcements(baseUrl, policies, publicKeys[0]),
    elapsedMs,
  });
  const resources = createStaticLog(store);
  const places = createLogPlaces(store, checkpoints);
  const prove = createProveEntry({ store, checkpoints, elapsedMs });
  const publicLog: PublicLog = { generation, store, checkpoints, resources, places, prove };
  const jobs: readonly Job[] = [
    { name: "log", everyMs: 500, run: log.integrate },
    // One job per witness, so that none waits for another, and one for anchors.
    ...witnessing.jobs(log.distrust).map((job) => ({ ...job, everyMs: 500 })),
  ];
  return {
    publicLog,
    /** The proofs of records. They come before the records' own routes, whose paths they share. */
    proofs: (exists: ProofRouteParts["exists"]): readonly Listed[] =>
      under("Transparency log", proofRoutes({ publicLog, exists })),
    routes: under("Transparency log", logRoutes({ publicLog, baseUrl })),
    jobs,
    facts: () => witnessing.facts(log.state()),
  };
}

const sha256 = (value: unknown): string => createHash("sha256").update(jcs(value)).digest("hex");

/** The constants of the score. */
const SCORE_RULES = Object.fromEntries(Object.entries(bands).filter(([, value]) => typeof value !== "function"));

/** The facts that this release publishes when it starts: policies, the score version, and the signing key. */
const announcements = (
  baseUrl: string,
  policies: LogNeeds["policies"],
  key: PublicJwk | undefined,
): readonly Announced[] => [
  ...policies.map((policy) => ({
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
