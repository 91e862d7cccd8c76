import { createHash } from "node:crypto";
import { parseCheckpoint } from "../../../packages/verifier/src/tlog/checkpoint.ts";
import { verifyNote } from "../../../packages/verifier/src/tlog/note.ts";
import type { VerifierKey } from "../../../packages/verifier/src/tlog/verifier-key.ts";
import type { Witness } from "../../platform/config/log-settings.ts";
import type { KnownHead, KnownHeads } from "../trust.ts";
import type { WitnessCalls, WitnessReply } from "./calls-web.ts";

/** The URL of a witness's checkpoint of a log (C2SP tlog-witness). */
export const headUrl = ({ monitoring }: Witness, origin: string): string =>
  `${monitoring}/${createHash("sha256").update(origin).digest("hex")}/checkpoint`;

/**
 * Parses a witness's checkpoint of a log, which must have the signatures of both. Returns null if the witness has not seen
 * the log. Rejects a response that proves nothing.
 */
export async function witnessedHead(
  witness: Witness,
  log: VerifierKey,
  { status, body }: WitnessReply,
): Promise<KnownHead | null> {
  if (status === 404) return null;
  if (status !== 200) throw new Error(`it returned status ${status}`);
  const { text, signatures } = await verifyNote(body, [log, witness.key]);
  const { origin, size, root } = parseCheckpoint(text);
  const cosignature = signatures.find(({ key }) => key === witness.key);
  if (cosignature === undefined || !signatures.some(({ key }) => key === log))
    throw new Error("its checkpoint lacks the log's signature or its own");
  if (origin !== log.name) throw new Error("it returned another log's checkpoint");
  const at = new Date((cosignature.seconds ?? 0) * 1_000);
  return { size, root, source: `the witness ${witness.key.name}`, at: Number.isNaN(at.getTime()) ? null : at };
}

/** A source that may have seen the log: a witness, or the anchors on a chain. */
export interface HeadSource {
  readonly name: string;
  /** Returns null if it has not seen the log of this key, whose name is its origin. Rejects a response that proves nothing. */
  readonly head: (log: VerifierKey) => Promise<KnownHead | null>;
}

export const witnessSources = (witnesses: readonly Witness[], calls: WitnessCalls): readonly HeadSource[] =>
  witnesses.map((witness) => ({
    name: `the witness ${witness.key.name}`,
    head: async (log) => witnessedHead(witness, log, await calls.get(headUrl(witness, log.name))),
  }));

/** @param key the log's key */
export const createKnownHeads = (sources: readonly HeadSource[], key: VerifierKey): KnownHeads => ({
  sources: sources.length,
  async ask() {
    const answers = await Promise.all(
      sources.map(({ name, head }) =>
        head(key).then(
          (found) => ({ found, silent: [] }),
          (error: Error) => ({ found: null, silent: [`${name} (${error.message})`] }),
        ),
      ),
    );
    return {
      heads: answers.flatMap(({ found }) => (found === null ? [] : [found])),
      silent: answers.flatMap(({ silent }) => silent),
    };
  },
});
