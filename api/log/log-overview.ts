import { ENTRY_TYPES, type EntryType } from "../../packages/verifier/src/tlog/entry-types.ts";
import type { WitnessOverview } from "./checkpoints-store.ts";
import { checkpointPath, entryPath, logPath, proofPath, recordPath } from "./log-paths.ts";
import type { LogPlace } from "./log-section.ts";
import type { Generation, LoggedEntry, StoredCheckpoint } from "./store.ts";

export interface PolicyParts {
  readonly log: { readonly vkey: string; readonly url: string };
  readonly witnesses: readonly { readonly name: string; readonly vkey: string }[];
  /** The number of witnesses that must cosign. */
  readonly quorum: number;
}

/** Returns a policy file (C2SP tlog-policy) that trusts this log once enough of its witnesses have cosigned. */
export function policyText({ log, witnesses, quorum }: PolicyParts): string {
  const lines = [`log ${log.vkey} ${log.url}`];
  if (witnesses.length === 0 || quorum === 0) return `${[...lines, "quorum none"].join("\n")}\n`;
  const names = witnesses.map(({ name }, place) => (isFree(name, witnesses) ? name : ownName(place, witnesses)));
  lines.push(...witnesses.map(({ vkey }, place) => `witness ${names[place]} ${vkey}`));
  if (names.length === 1) return `${[...lines, `quorum ${names[0]}`].join("\n")}\n`;
  return `${[...lines, `group ${QUORUM} ${quorum} ${names.join(" ")}`, `quorum ${QUORUM}`].join("\n")}\n`;
}

const QUORUM = "enough-witnesses";

/** Returns a name that no witness uses. */
function ownName(place: number, witnesses: PolicyParts["witnesses"]): string {
  let own = `witness-${place + 1}`;
  while (witnesses.some(({ name }) => name === own)) own += "-";
  return own;
}

/** Whether a key's name can name its witness in the file, because it is unique and not reserved. */
const isFree = (name: string, witnesses: PolicyParts["witnesses"]): boolean =>
  name !== "none" && name !== QUORUM && witnesses.filter((one) => one.name === name).length === 1;

/** The meaning of each entry type, for people. */
export const ENTRY_MEANINGS: Readonly<Record<EntryType, string>> = {
  certificate: "Certificate, as issued",
  reversal: "Reversal: the chain dropped the certificate's settlement",
  proof: "Published proof of a FAIL",
  seller_certificate: "Seller's certificate, as issued",
  seller_correction: "Correction of a seller's certificate",
  verdict: "Verdict of the arbiter",
  correction: "Correction of a verdict",
  evaluation: "Escrow evaluation",
  contest_answer: "Answer to a contest",
  policy: "Policy of the arbiter",
  score_version: "Version of the risk score",
  signing_key: "Signing key",
};

export interface OverviewParts {
  /** The log on the page. Its key is null until the log has begun. */
  readonly shown: Pick<Generation, "generation" | "origin"> & { readonly vkey: string | null };
  /** All logs of the service, oldest first. Only the last one grows. */
  readonly generations: readonly Generation[];
  readonly checkpoint: StoredCheckpoint | null;
  readonly witnesses: readonly WitnessOverview[];
  readonly quorum: number;
  /** Newest first. */
  readonly newest: readonly LoggedEntry[];
  /** The search and its results, or null without a search. */
  readonly search: { readonly id: string; readonly found: readonly LogPlace[] } | null;
  /** No trailing slash. */
  readonly baseUrl: string;
}

const listed = (entry: LoggedEntry, baseUrl: string) => {
  const record = recordPath(entry);
  return {
    generation: entry.generation,
    index: entry.index,
    type: entry.type,
    id: entry.ref,
    at: entry.at.toISOString(),
    record_url: record === null ? null : `${baseUrl}${record}`,
    entry_url: `${baseUrl}${entryPath(entry)}`,
    proof_url: `${baseUrl}${proofPath(entry)}`,
  };
};

/** An entry with its document, and the witnesses that cosigned a tree with it. */
export const entryDocument = (place: LogPlace, baseUrl: string) => ({
  ...listed(place, baseUrl),
  witnessed_by: [...place.witnesses],
  entry: JSON.parse(new TextDecoder().decode(place.entry)) as unknown,
});

export const placeDocument = (place: LogPlace, baseUrl: string) => ({
  generation: place.generation,
  index: place.index,
  type: place.type,
  proof_url: `${baseUrl}${proofPath(place)}`,
  witnessed_by: [...place.witnesses],
});

/** Returns the document of `GET /log`. */
export function logOverview(parts: OverviewParts) {
  const { shown, generations, checkpoint, witnesses, quorum, baseUrl } = parts;
  const url = `${baseUrl}${logPath(shown.generation)}`;
  return {
    service: "Agent Payment Trust Service" as const,
    origin: shown.origin,
    generation: shown.generation,
    vkey: shown.vkey,
    url,
    checkpoint_url: `${baseUrl}${checkpointPath(shown.generation)}`,
    checkpoint:
      checkpoint === null
        ? null
        : {
            size: checkpoint.size,
            root_hash: Buffer.from(checkpoint.root).toString("base64"),
            at: checkpoint.at.toISOString(),
            note: checkpoint.note,
          },
    quorum,
    witnesses: witnesses.map(({ name, vkey, size, at }) => ({
      name,
      vkey,
      size,
      cosigned_at: at?.toISOString() ?? null,
    })),
    policy: shown.vkey === null ? null : policyText({ log: { vkey: shown.vkey, url }, witnesses, quorum }),
    entry_types: ENTRY_TYPES.map((type) => ({ type, meaning: ENTRY_MEANINGS[type] })),
    newest: parts.newest.map((entry) => listed(entry, baseUrl)),
    ...(parts.search === null
      ? {}
      : { search: { id: parts.search.id, found: parts.search.found.map((place) => entryDocument(place, baseUrl)) } }),
    generations: generations.map(({ generation, origin, vkey, startedAt }, place) => ({
      generation,
      origin,
      vkey,
      started_at: startedAt.toISOString(),
      ended: place < generations.length - 1,
      checkpoint_url: `${baseUrl}${checkpointPath(generation)}`,
    })),
  };
}

export type LogOverview = ReturnType<typeof logOverview>;
