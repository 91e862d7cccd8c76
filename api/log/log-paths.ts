import type { EntryType } from "../../packages/verifier/src/tlog/entry-types.ts";
import { npxCommand, VERIFIER } from "../platform/packages.ts";
import type { LogPlace } from "./log-section.ts";
import type { LoggedEntry } from "./store.ts";

/** The path at which a generation of the log is served. */
export const logPath = (generation: number): string => (generation === 1 ? "/log" : `/log/${generation}`);

/** The log's name: its address without the scheme (C2SP tlog-checkpoint). */
export const logOrigin = (baseUrl: string, generation: number): string =>
  `${new URL(baseUrl).host}${logPath(generation)}`;

export const LOG_PATH = "/log";
export const PROOF_SUFFIX = ".tlog-proof";

export const checkpointPath = (generation: number): string => `${logPath(generation)}/checkpoint`;

export const entryPath = ({ generation, index }: Pick<LoggedEntry, "generation" | "index">): string =>
  `${logPath(generation)}/entry/${index}`;

/**
 * A kind of record with its own URL, and the entries about it. The other slices import the log, so the log hard-codes
 * their URLs, which never change, and knows nothing else about them.
 */
export interface RecordKind {
  readonly route: string;
  readonly path: (ref: string) => string;
  /** The entry types of the record, in the order in which they are created. */
  readonly types: readonly EntryType[];
  /** The types to prove if the request does not name one. */
  readonly first: readonly EntryType[];
}

/** Certificates of wallets and, with ids twice as long, of sellers. */
export const CERTIFICATE_ENTRIES: RecordKind = {
  route: "/cert/:id",
  path: (ref) => `/cert/${ref}`,
  types: ["certificate", "reversal", "proof", "seller_certificate", "seller_correction"],
  first: ["certificate", "seller_certificate"],
};
export const VERDICT_ENTRIES: RecordKind = {
  route: "/arbiter/verdict/:id",
  path: (ref) => `/arbiter/verdict/${ref}`,
  types: ["verdict", "correction"],
  first: ["verdict", "correction"],
};
export const EVALUATION_ENTRIES: RecordKind = {
  route: "/escrow/evaluation/:payment",
  path: (ref) => `/escrow/evaluation/${ref}`,
  types: ["evaluation", "contest_answer"],
  first: ["evaluation"],
};

const RECORD_KINDS = [CERTIFICATE_ENTRIES, VERDICT_ENTRIES, EVALUATION_ENTRIES] as const;

const kindOf = (type: EntryType): RecordKind | null => RECORD_KINDS.find(({ types }) => types.includes(type)) ?? null;

/** Returns the path of the record that an entry is about, or null if it has no page. */
export function recordPath({ type, ref }: Pick<LoggedEntry, "type" | "ref">): string | null {
  if (type === "contest_answer") return `/escrow/contest/${ref}`;
  if (type === "policy") return `/arbiter/policy?version=${ref}`;
  if (type === "score_version") return "/docs#score";
  if (type === "signing_key") return "/.well-known/jwks.json";
  return kindOf(type)?.path(ref) ?? null;
}

/** Returns the path of the proof that an entry is in the log, next to its record's path. */
export function proofPath(entry: Pick<LoggedEntry, "type" | "ref" | "generation" | "index">): string {
  const kind = kindOf(entry.type);
  if (kind === null) return `${entryPath(entry)}${PROOF_SUFFIX}`;
  const path = `${kind.path(entry.ref)}${PROOF_SUFFIX}`;
  return kind.first.includes(entry.type) ? path : `${path}?type=${entry.type}`;
}

interface Answering {
  header(name: string, value: string, options?: { readonly append?: boolean }): void;
}

/** The relation (RFC 8288) of a record to the proof that it is in the log. */
const RELATION = "https://c2sp.org/tlog-proof";

/** Links a record to its proofs in headers, because the record's bytes never change. */
export function linkProof(c: Answering, places: readonly LogPlace[]): void {
  for (const place of places)
    c.header("link", `<${proofPath(place)}>; rel="${RELATION}"; index="${place.index}"`, { append: true });
}

const verifier = (baseUrl: string): string => npxCommand(baseUrl, VERIFIER);

/** Commands that fetch a certificate and its proof, and check both offline. */
export const checkCommands = (
  baseUrl: string,
): string => `curl -s '${baseUrl}/cert/0123456789abcdef?format=json' > record.json
curl -s '${baseUrl}/cert/0123456789abcdef.tlog-proof' > record.tlog-proof
${verifier(baseUrl)} \\
  log record.json --proof record.tlog-proof --policy policy.txt --issuer ${baseUrl}`;

/** Commands that follow the log and check every entry. */
export const followCommands = (baseUrl: string, logUrl: string): string =>
  `${verifier(baseUrl)} \\
  log monitor ${logUrl} --policy policy.txt`;
