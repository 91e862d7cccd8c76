import { quote, Refusal } from "../refusal.ts";
import { type ParsedCheckpoint, parseCheckpoint } from "./checkpoint.ts";
import { parseNote, verifyNote } from "./note.ts";
import type { Policy, Rule } from "./parse-policy.ts";

export { type Policy, parsePolicy } from "./parse-policy.ts";

/** The log and the witnesses of a policy that vouch for a checkpoint. */
export interface Witnessed {
  /** The log that signed it. */
  readonly log: string;
  /**
   * The witnesses that cosigned it, each with the POSIX time of its newest cosignature; 0 if it states no time, which
   * ML-DSA-44 permits.
   */
  readonly witnesses: readonly WitnessedAt[];
}

interface WitnessedAt {
  readonly name: string;
  readonly seconds: number;
}

/** Returns the time of a cosignature by the witness's own clock, which may be in the future. */
export const witnessedAt = ({ seconds }: WitnessedAt): string =>
  seconds === 0 ? "no stated time" : new Date(seconds * 1000).toISOString();

/**
 * Checks a signed checkpoint: its log's signature, every signature of a witness that the policy names, and the quorum.
 * @throws Refusal `unknown_log` or `quorum_not_met`, and those that `verifyNote` and `parseCheckpoint` throw
 */
export async function verifyCheckpoint(
  note: string | Uint8Array,
  { logs, witnesses, quorum }: Policy,
): Promise<Witnessed & { readonly checkpoint: ParsedCheckpoint }> {
  const checkpoint = parseCheckpoint(parseNote(note).text);
  const trusted = logs.map(({ key }) => key).filter(({ name }) => name === checkpoint.origin);
  if (trusted.length === 0)
    throw new Refusal("unknown_log", `the policy does not name the log ${quote(checkpoint.origin)}`);
  const { signatures } = await verifyNote(note, [...trusted, ...witnesses.map(({ key }) => key)]);
  const signed = new Set(signatures.map(({ key }) => key.vkey));
  if (!trusted.some(({ vkey }) => signed.has(vkey)))
    throw new Refusal("note_not_signed", `the checkpoint is not signed by its log ${quote(checkpoint.origin)}`);
  const cosigned = witnesses
    .filter(({ key }) => signed.has(key.vkey))
    .map(({ name, key }) => {
      const times = signatures.filter((one) => one.key.vkey === key.vkey).map(({ seconds }) => seconds ?? 0);
      return { name, seconds: Math.max(...times) };
    });
  if (quorum !== null && !isMet(quorum, signed)) {
    const names = cosigned.map(({ name }) => quote(name)).join(", ");
    throw new Refusal(
      "quorum_not_met",
      `the checkpoint lacks the policy's quorum; cosigned by: ${names || "no witness"}`,
    );
  }
  return { checkpoint, log: checkpoint.origin, witnesses: cosigned };
}

const isMet = (rule: Rule, signed: ReadonlySet<string>): boolean =>
  "witness" in rule
    ? signed.has(rule.witness.vkey)
    : rule.members.filter((member) => isMet(member, signed)).length >= rule.least;
