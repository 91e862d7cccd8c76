import { fromBase64 } from "../../packages/verifier/src/encodings.ts";
import { Refusal } from "../../packages/verifier/src/refusal.ts";
import { type ParsedCheckpoint, parseCheckpoint } from "../../packages/verifier/src/tlog/checkpoint.ts";
import { EMPTY_ROOT, HASH_SIZE } from "../../packages/verifier/src/tlog/hash.ts";
import {
  cosign,
  type NoteSigner,
  type ParsedNote,
  parseNote,
  verifySignatures,
} from "../../packages/verifier/src/tlog/note.ts";
import { verifyConsistency } from "../../packages/verifier/src/tlog/tree.ts";
import type { VerifierKey } from "../../packages/verifier/src/tlog/verifier-key.ts";
import type { Records } from "./records.ts";

export interface WitnessParts {
  readonly signer: NoteSigner;
  /** The keys of the logs that it watches, by origin. */
  readonly logs: ReadonlyMap<string, readonly VerifierKey[]>;
  readonly records: Records;
  readonly now: () => Date;
}

export interface WitnessAnswer {
  readonly status: 200 | 400 | 403 | 404 | 409 | 422 | 503;
  readonly type: "text/plain; charset=utf-8" | "text/x.tlog.size";
  readonly body: string;
}

/** The maximum in C2SP tlog-witness. */
const MOST_HASHES = 63;
/** The maximum retries of concurrent requests for one log. One of them wins each pass. */
const MOST_PASSES = 20;

interface Offer {
  readonly oldSize: number;
  readonly proof: readonly Uint8Array[];
  readonly note: ParsedNote;
}

class Refused extends Error {
  readonly status: WitnessAnswer["status"];
  constructor(status: WitnessAnswer["status"], reason: string) {
    super(reason);
    this.status = status;
  }
}

const text = (status: WitnessAnswer["status"], body: string): WitnessAnswer => ({
  status,
  type: "text/plain; charset=utf-8",
  body,
});

/**
 * Handles `add-checkpoint` of C2SP tlog-witness, which cosigns a checkpoint that is consistent with the last cosigned one. The
 * record is replaced before the cosignature is returned, and only if it is still the one that was compared.
 */
export async function addCheckpoint(parts: WitnessParts, body: string): Promise<WitnessAnswer> {
  try {
    const offer = parseOffer(body);
    const lines = await logSignatures(parts, offer.note);
    const checkpoint = checkpointIn(offer);
    for (let pass = 0; pass < MOST_PASSES; pass++) {
      const answer = await extend(parts, offer, { checkpoint, lines });
      if (answer !== null) return answer;
    }
    return text(503, "too many concurrent requests for this log\n");
  } catch (error) {
    if (error instanceof Refused) return text(error.status, `${error.message}\n`);
    throw error;
  }
}

/** Returns null if another request was faster. */
async function extend(
  { signer, records, now }: WitnessParts,
  { oldSize, proof, note }: Offer,
  { checkpoint, lines }: { readonly checkpoint: ParsedCheckpoint; readonly lines: string },
): Promise<WitnessAnswer | null> {
  const { origin, size, root } = checkpoint;
  const before = records.latest(origin);
  const known = before ?? { size: 0, root: EMPTY_ROOT, seconds: 0 };
  if (oldSize !== known.size) return { status: 409, type: "text/x.tlog.size", body: `${known.size}\n` };
  refusing(422, () => verifyConsistency({ oldSize, oldRoot: known.root, newSize: size, newRoot: root, proof }));
  // A clock that was set back must not make a smaller tree look newer.
  const seconds = Math.max(Math.floor(now().getTime() / 1_000), known.seconds);
  const line = await cosign(note.text, signer, seconds);
  const after = { size, root, seconds, checkpoint: `${note.text}\n${lines}${line}` };
  return records.advance(origin, before, after) ? text(200, line) : null;
}

function parseOffer(body: string): Offer {
  const end = body.indexOf("\n\n");
  if (end === -1) throw new Refused(400, "expected an old size line, proof lines, an empty line and a checkpoint");
  const [first = "", ...lines] = body.slice(0, end).split("\n");
  const digits = /^old (0|[1-9]\d{0,15})$/.exec(first)?.[1];
  const oldSize = Number(digits);
  if (digits === undefined || !Number.isSafeInteger(oldSize))
    throw new Refused(400, "expected the old size in the first line, such as old 20852014");
  if (lines.length > MOST_HASHES) throw new Refused(400, `expected at most ${MOST_HASHES} hashes in the proof`);
  const proof = lines.map((line) => {
    const hash = fromBase64(line);
    if (hash?.length !== HASH_SIZE) throw new Refused(400, "expected 32 bytes in base64 in each line of the proof");
    return hash;
  });
  return { oldSize, proof, note: refusing(400, () => parseNote(body.slice(end + 2))) };
}

/** Returns the valid signature lines of the log's known keys. */
async function logSignatures({ logs }: WitnessParts, note: ParsedNote): Promise<string> {
  const [origin = ""] = note.text.split("\n");
  const keys = logs.get(origin);
  if (keys === undefined) throw new Refused(404, "this log is not known here");
  const { signatures } = await verifySignatures(note.text, note.signatures, keys).catch((error: unknown) => {
    if (!(error instanceof Refusal)) throw error;
    throw new Refused(error.code === "malformed_checkpoint" ? 400 : 403, error.message);
  });
  if (signatures.length === 0) throw new Refused(403, "the checkpoint is not signed by a known key of this log");
  return signatures.map(({ line }) => line).join("");
}

function checkpointIn({ oldSize, note }: Offer): ParsedCheckpoint {
  const isEmpty = /^[^\n]+\n0\n/.test(note.text);
  const checkpoint = refusing(isEmpty && oldSize === 0 ? 422 : 400, () => parseCheckpoint(note.text));
  if (oldSize > checkpoint.size) throw new Refused(400, "the old size is larger than the checkpoint's");
  return checkpoint;
}

function refusing<T>(status: WitnessAnswer["status"], check: () => T): T {
  try {
    return check();
  } catch (error) {
    if (error instanceof Refusal) throw new Refused(status, error.message);
    throw error;
  }
}
