import { toBase64 } from "../../../packages/verifier/src/encodings.ts";
import { sameBytes } from "../../../packages/verifier/src/tlog/hash.ts";
import { parseNote, parseSignatures, verifySignatures } from "../../../packages/verifier/src/tlog/note.ts";
import type { ReadTiles } from "../../../packages/verifier/src/tlog/tile.ts";
import { consistencyProof, rootHash } from "../../../packages/verifier/src/tlog/tree.ts";
import type { VerifierKey } from "../../../packages/verifier/src/tlog/verifier-key.ts";
import type { Witness } from "../../platform/config/log-settings.ts";
import type { LogStore, StoredCheckpoint } from "../store.ts";
import { headUrl, witnessedHead } from "./ask-witnesses.ts";
import type { WitnessCalls, WitnessReply } from "./calls-web.ts";
import { type Cosignature, LONGEST_WAIT_SECONDS, type WitnessLease, type WitnessStore } from "./store.ts";

export interface OfferParts {
  readonly generation: number;
  /** The log's own key; its name is the log's origin. */
  readonly key: VerifierKey;
  readonly store: Pick<LogStore, "newest" | "tiles">;
  readonly witnesses: WitnessStore;
  readonly calls: WitnessCalls;
  /** Called when a fork is proven: the witnesses and anchors must be checked before the next signature. */
  readonly distrust: () => void;
  readonly now: () => Date;
}

/** The maximum difference between a witness's clock and ours. */
const AHEAD_SECONDS = 60;
/** The number of sizes that a witness may report in a row before it is left alone for a while. */
const MOST_SIZES = 3;

class Refused extends Error {
  readonly size: number | undefined;
  readonly danger: string | undefined;
  constructor(reason: string, { size, danger }: { size?: number; danger?: string } = {}) {
    super(reason);
    this.size = size;
    this.danger = danger;
  }
}

/**
 * Offers the newest checkpoint to one witness, if it is due, and stores its cosignature. A witness's faults are recorded,
 * not thrown; only database errors are thrown.
 */
export function createOffer(parts: OfferParts): (witness: Witness) => Promise<void> {
  const { generation, store, witnesses } = parts;
  return async (witness) => {
    const place = { generation, vkey: witness.key.vkey };
    const newest = await store.newest(generation);
    const turn = newest && (await witnesses.takeTurn(place, newest.size));
    if (newest === null || turn === null) return;
    try {
      const cosignatures = await offer(parts, witness, { newest, turn });
      await witnesses.accept(place, newest.size, cosignatures);
    } catch (error) {
      const { size, danger } = error instanceof Refused ? error : {};
      await witnesses.fail(place, {
        error: printable((error as Error).message),
        waitSeconds: Math.min(2 ** turn.failures, LONGEST_WAIT_SECONDS),
        ...(size === undefined ? {} : { size }),
        ...(danger === undefined ? {} : { danger }),
      });
    } finally {
      turn.end();
    }
  };
}

const readerOf =
  ({ store, generation }: OfferParts): ReadTiles =>
  (ids) =>
    store.tiles(generation, ids);

async function offer(
  parts: OfferParts,
  witness: Witness,
  { newest, turn }: { readonly newest: StoredCheckpoint; readonly turn: WitnessLease },
): Promise<readonly Cosignature[]> {
  let from = Math.min(turn.size, newest.size);
  for (let tries = 0; tries < MOST_SIZES; tries++) {
    const proof = await consistencyProof(from, newest.size, readerOf(parts));
    const lines = proof.map((hash) => `${toBase64(hash)}\n`).join("");
    const reply = await parts.calls.post(
      `${witness.submission}/add-checkpoint`,
      `old ${from}\n${lines}\n${newest.note}`,
    );
    if (reply.status === 200) return cosignaturesIn(parts, witness, { newest, reply });
    if (reply.status === 422) throw await refusal(parts, witness, newest);
    if (reply.status !== 409) throw new Refused(`it returned status ${reply.status}: ${reply.body}`);
    from = await sizeIn(parts, witness, reply);
    if (from > newest.size) throw new Refused("it already has a newer checkpoint", { size: from });
  }
  throw new Refused(`it returned a different size each time, last ${from}`);
}

async function cosignaturesIn(
  { now }: OfferParts,
  { key }: Witness,
  { newest, reply }: { readonly newest: StoredCheckpoint; readonly reply: WitnessReply },
): Promise<readonly Cosignature[]> {
  const { signatures } = await verifySignatures(parseNote(newest.note).text, parseSignatures(reply.body), [key]);
  const found = signatures.map(({ line, seconds }) => {
    if (seconds === null || seconds === 0) throw new Refused("its cosignature has no time");
    const ahead = seconds - Math.floor(now().getTime() / 1_000);
    if (ahead > AHEAD_SECONDS) throw new Refused(`its cosignature is ${ahead} seconds in the future`);
    return { keyName: key.name, keyId: key.id, line, seconds };
  });
  if (found.length === 0) throw new Refused(`none of its signatures is by ${key.vkey}`);
  return found;
}

/** Parses the size that a witness reports. If it is more than this log has, the log was forked or has lost entries. */
async function sizeIn(parts: OfferParts, witness: Witness, { type, body }: WitnessReply): Promise<number> {
  const size = /^(0|[1-9]\d{0,15})\n$/.test(body) ? Number(body) : Number.NaN;
  if (!type.startsWith("text/x.tlog.size") || !Number.isSafeInteger(size))
    throw new Refused(`it returned status 409 without a size: ${body}`);
  const ours = (await parts.store.newest(parts.generation))?.size ?? 0;
  if (size <= ours) return size;
  const shown = await shownBy(parts, witness);
  if (shown !== null && (await isFork(parts, shown))) parts.distrust();
  throw new Refused(`it has cosigned ${size} entries, and this log has ${ours}`, {
    danger: `the witness ${witness.key.name} has cosigned ${size} entries of this log, which has ${ours}: ${ADVICE}`,
  });
}

const ADVICE =
  "signing more may fork the log. If this database was restored from a backup, end this log with a higher LOG_GENERATION; if the witness is at fault, remove it from LOG_WITNESSES";

/** Handles status 422. A witness that shows a prefix of our log is itself at fault; any other stops the log from signing. */
async function refusal(parts: OfferParts, witness: Witness, newest: StoredCheckpoint): Promise<Refused> {
  const shown = await shownBy(parts, witness);
  const reason = `it rejects ${newest.size} entries as inconsistent with what it has cosigned`;
  if (shown !== null && !(await isFork(parts, shown)))
    return new Refused(`${reason}, but it shows ${shown.size} entries, which are a prefix of this log`);
  if (shown !== null) parts.distrust();
  return new Refused(reason, { danger: `the witness ${witness.key.name} rejects this log as a fork: ${ADVICE}` });
}

const shownBy = (parts: OfferParts, witness: Witness) =>
  parts.calls
    .get(headUrl(witness, parts.key.name))
    .then((reply) => witnessedHead(witness, parts.key, reply))
    .catch(() => null);

async function isFork(parts: OfferParts, shown: { readonly size: number; readonly root: Uint8Array }) {
  const newest = await parts.store.newest(parts.generation);
  if (newest === null || shown.size > newest.size) return true;
  return !sameBytes(shown.root, await rootHash(shown.size, readerOf(parts)));
}

/** Makes a stranger's text printable, short, and one line, for /status. */
const printable = (text: string): string =>
  text
    .replace(/[^\x20-\x7e]+/g, " ")
    .trim()
    .slice(0, 300);
