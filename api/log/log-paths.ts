import type { EntryType } from "../../packages/verifier/src/tlog/entry-types.ts";
import { npxCommand, VERIFIER } from "../platform/packages.ts";
import type { LogPlace } from "./log-section.ts";
import type { LoggedEntry } from "./store.ts";

/** Where a generation of the log is served, below the service's address. */
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
 * A record with a URL of its own, and what the log says about it. Features know the log, so the log knows their URLs,
 * which never change, and nothing else of them.
 */
export interface RecordKind {
  /** As the table of routes writes it. */
  readonly route: string;
  readonly path: (ref: string) => string;
  /** The entries that the record may have, in the order in which they come to be. */
  readonly types: readonly EntryType[];
  /** Which of them a proof is about if the request names none. */
  readonly first: readonly EntryType[];
}

/** Of wallets and, with ids twice as long, of sellers. */
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

/** Where people find what an entry is about; null if nothing but the entry says it. */
export function recordPath({ type, ref }: Pick<LoggedEntry, "type" | "ref">): string | null {
  if (type === "contest_answer") return `/escrow/contest/${ref}`;
  if (type === "policy") return `/arbiter/policy?version=${ref}`;
  if (type === "score_version") return "/docs#score";
  if (type === "signing_key") return "/.well-known/jwks.json";
  return kindOf(type)?.path(ref) ?? null;
}

/** The proof that an entry is in the log, beside the record that it is about. */
export function proofPath(entry: Pick<LoggedEntry, "type" | "ref" | "generation" | "index">): string {
  const kind = kindOf(entry.type);
  if (kind === null) return `${entryPath(entry)}${PROOF_SUFFIX}`;
  const path = `${kind.path(entry.ref)}${PROOF_SUFFIX}`;
  return kind.first.includes(entry.type) ? path : `${path}?type=${entry.type}`;
}

/** Where a header can be added to an answer. */
interface Answering {
  header(name: string, value: string, options?: { readonly append?: boolean }): void;
}

/** The relation (RFC 8288) of a record to the proof that it is in the log. */
const RELATION = "https://c2sp.org/tlog-proof";

/** Links a record, whose bytes never change, to its proofs, each with its index: in headers, beside the bytes. */
export function linkProof(c: Answering, places: readonly LogPlace[]): void {
  for (const place of places)
    c.header("link", `<${proofPath(place)}>; rel="${RELATION}"; index="${place.index}"`, { append: true });
}

const verifier = (baseUrl: string): string => npxCommand(baseUrl, VERIFIER);

/** Fetches a certificate with its proof, and checks both offline. */
export const checkCommands = (
  baseUrl: string,
): string => `curl -s '${baseUrl}/cert/0123456789abcdef?format=json' > record.json
curl -s '${baseUrl}/cert/0123456789abcdef.tlog-proof' > record.tlog-proof
${verifier(baseUrl)} \\
  log record.json --proof record.tlog-proof --policy policy.txt --issuer ${baseUrl}`;

/** Follows the log and checks every entry. */
export const followCommands = (baseUrl: string, logUrl: string): string =>
  `${verifier(baseUrl)} \\
  log monitor ${logUrl} --policy policy.txt`;
