import { quote, Refusal } from "../refusal.ts";
import { type ParsedCheckpoint, parseCheckpoint } from "./checkpoint.ts";
import { parseNote, verifyNote } from "./note.ts";
import { NOTE_TYPE, parseVerifierKey, type VerifierKey } from "./verifier-key.ts";

/**
 * When a member of a policy counts as having witnessed: a witness when it cosigned, a group when `least` members did.
 */
type Rule = { readonly witness: VerifierKey } | { readonly least: number; readonly members: readonly Rule[] };

/** The keys to trust (C2SP tlog-policy): any of these logs, once its checkpoint is witnessed. */
export interface Policy {
  readonly logs: readonly { readonly key: VerifierKey; readonly url: string | null }[];
  /** Names are the ones in the file. */
  readonly witnesses: readonly { readonly name: string; readonly key: VerifierKey; readonly url: string | null }[];
  /** Null if no cosignature is required (`quorum none`). */
  readonly quorum: Rule | null;
}

const MAX_BYTES = 1_048_576;
const NONE = "none";

/** The part of the file that has been read. */
interface Draft {
  readonly logs: Policy["logs"][number][];
  readonly witnesses: Policy["witnesses"][number][];
  readonly rules: Map<string, Rule>;
  /** Names that are already members of a group. */
  readonly members: Set<string>;
  quorum: Rule | null | undefined;
}

/** Parses a policy file. @throws Refusal `malformed_policy`, with the line; and those that `parseVerifierKey` throws */
export function parsePolicy(source: string | Uint8Array): Policy {
  const octets = typeof source === "string" ? new TextEncoder().encode(source) : source;
  if (octets.length > MAX_BYTES) throw new Refusal("malformed_policy", "the policy is longer than 1 MiB");
  const draft: Draft = { logs: [], witnesses: [], rules: new Map(), members: new Set(), quorum: undefined };
  // Each octet is one character, so that names are compared octet by octet.
  for (const [at, line] of binary(octets).split("\n").entries()) {
    const refuse = (reason: string): never => {
      throw new Refusal("malformed_policy", `line ${at + 1} of the policy: ${reason}`);
    };
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are refused
    if (/[\u0000-\u0008\u000b-\u001f\u007f]/.test(line)) refuse("it has a control character");
    const words = line.split(/[ \t]+/).filter((word) => word !== "");
    if (words[0] !== undefined && !words[0].startsWith("#")) readLine(words, draft, refuse);
  }
  const { logs, witnesses, quorum } = draft;
  if (quorum === undefined) throw new Refusal("malformed_policy", "the policy has no quorum line");
  return { logs, witnesses, quorum };
}

type Refuse = (reason: string) => never;

function readLine([keyword, ...words]: readonly string[], draft: Draft, refuse: Refuse): void {
  switch (keyword) {
    case "log": {
      const [vkey = refuse("expected log <vkey> [<url>]"), url = null, ...more] = words;
      if (more.length > 0) refuse("expected log <vkey> [<url>]");
      const key = readKey(vkey, draft.logs, refuse);
      if (key.type === NOTE_TYPE.cosignature) refuse("the key of a log is not a witness's (signature type 4)");
      draft.logs.push({ key, url });
      return;
    }
    case "witness": {
      const [name = "", vkey = refuse("expected witness <name> <vkey> [<url>]"), url = null, ...more] = words;
      if (more.length > 0) refuse("expected witness <name> <vkey> [<url>]");
      const key = readKey(vkey, draft.witnesses, refuse);
      if (key.type === NOTE_TYPE.ed25519) refuse("the key of a witness has signature type 4 or 6, not 1");
      define([name, { witness: key }], draft, refuse);
      draft.witnesses.push({ name, key, url });
      return;
    }
    case "group":
      readGroup(words, draft, refuse);
      return;
    case "quorum": {
      const [name = refuse("expected quorum <name>"), ...more] = words;
      if (more.length > 0) refuse("expected quorum <name>");
      if (draft.quorum !== undefined) refuse("there is already a quorum line");
      draft.quorum = name === NONE ? null : ruleOf(name, draft, refuse);
      return;
    }
    default:
      refuse(`${quote(keyword)} is not log, witness, group, or quorum`);
  }
}

function readGroup([name = "", threshold = "", ...names]: readonly string[], draft: Draft, refuse: Refuse): void {
  if (names.length === 0) refuse("expected group <name> all|any|<k> <name>...");
  const members = names.map((member) => {
    if (draft.members.has(member)) refuse(`${quote(member)} is already a member of a group`);
    draft.members.add(member);
    return ruleOf(member, draft, refuse);
  });
  const least = threshold === "all" ? names.length : threshold === "any" ? 1 : Number(threshold);
  if (!/^(all|any|[1-9]\d{0,4})$/.test(threshold) || least > names.length)
    refuse(`${quote(threshold)} is not all, any, or a number from 1 to ${names.length}`);
  define([name, { least, members }], draft, refuse);
}

function define([name, rule]: readonly [string, Rule], { rules }: Draft, refuse: Refuse): void {
  if (name === NONE || rules.has(name)) refuse(`the name ${quote(name)} is taken`);
  rules.set(name, rule);
}

const ruleOf = (name: string, { rules }: Draft, refuse: Refuse): Rule =>
  rules.get(name) ?? refuse(`no line before defines ${quote(name)}`);

/** Each public key may represent only one log or witness, whatever its name. */
function readKey(vkey: string, known: readonly { readonly key: VerifierKey }[], refuse: Refuse): VerifierKey {
  const octets = Uint8Array.from(vkey, (char) => char.charCodeAt(0));
  const key = parseVerifierKey(new TextDecoder().decode(octets));
  const same = (one: VerifierKey): boolean => one.publicKey.join() === key.publicKey.join();
  if (known.some((one) => same(one.key))) refuse(`the public key of ${quote(key.name)} is named twice`);
  return key;
}

function binary(octets: Uint8Array): string {
  let text = "";
  for (const octet of octets) text += String.fromCharCode(octet);
  return text;
}

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
