import { setTimeout as pause } from "node:timers/promises";
import { fetchText, StatusError } from "../fetch-text.ts";
import { parseIssuer } from "../issuer.ts";
import { InputError, quote, Refusal } from "../refusal.ts";
import { type AnyEntry, isKnown } from "../tlog/entry.ts";
import { follow, START } from "../tlog/follow.ts";
import { documentUrl, type LogFiles } from "../tlog/log-files.ts";
import type { Policy } from "../tlog/policy.ts";
import { type Noted, noteOf } from "../tlog/wallet-log.ts";
import { counted, FLAG, isUrl, openLog, readArguments, readPolicy, TEXT } from "./arguments.ts";
import { appendNotes, beginNotes, type MonitorState, readState, writeState } from "./monitor-state.ts";
import { readTrust, TRUST_OPTIONS } from "./trust.ts";

const USAGE = `Follows a log, and checks that it only grows and that every new entry is genuine.

  agent-payment-trust-verifier log monitor <URL of the log | folder> --policy <file | URL>
    [--state <file>] [--wallets <file>] [--once] [--strict] [--every <seconds>] [--timeout <seconds>]
    [--issuer <origin | did:web:…>] [--jwks <file | URL>]

--state stores what was checked, so that the next run continues from there; without it, each run begins at entry 0. --wallets
stores the entries about each wallet's certificates, for "log wallet"; it requires --state. --once stops at the newest
checkpoint; otherwise the log is polled every 10 seconds, or every --every. Each file must arrive within 30 seconds, or --timeout.

An entry of a type that this version does not know is checked like any other and reported, but its meaning is unknown. With
--strict, such an entry ends the monitor.

Exit codes: 0 all is well (--once); 1 a fork, a changed entry, or an invalid signature, or with --strict an unknown type: the
output names it; 2 usage error, or the log cannot be read (--once).`;

const MAX_PAUSE_S = 300;

interface Monitoring {
  readonly log: LogFiles;
  /** The log's location and the keys that sign its entries. */
  readonly given: Parameters<typeof readTrust>[0];
  readonly policy: Policy;
  /** The file of the state, and of the notes on certificates, if they are stored. */
  readonly state: string | undefined;
  readonly wallets: string | undefined;
  /** Stop at an entry of unknown type. */
  readonly isStrict: boolean;
}

/**
 * The subcommand `log monitor`.
 * @param stop ends a monitor that runs without --once
 * @throws InputError for wrong usage, or for a source that cannot be read
 */
export async function monitorLog(args: readonly string[], stop?: AbortSignal): Promise<0 | 1> {
  const options = {
    ...{ policy: TEXT, state: TEXT, wallets: TEXT, every: TEXT, timeout: TEXT },
    ...{ once: FLAG, strict: FLAG },
  } as const;
  const given = readArguments(args, USAGE, { ...TRUST_OPTIONS, ...options });
  const { state, wallets } = given;
  const every = secondsIn("every", given.every ?? "10");
  const timeoutMs = secondsIn("timeout", given.timeout ?? "30") * 1000;
  if (wallets !== undefined && state === undefined) throw new InputError(`--wallets requires --state.\n\n${USAGE}`);
  const policy = await readPolicy(given.policy, USAGE);
  const { place, notes: bytes } = (state === undefined ? null : await readState(state)) ?? {
    place: START,
    notes: null,
  };
  const notes = wallets === undefined ? null : await beginNotes(wallets, place.size, bytes);
  const log = openLog(given.source, timeoutMs);
  const monitoring = { log, given, policy, state, wallets, isStrict: given.strict === true };
  try {
    return given.once === true
      ? await catchUp({ place, notes }, monitoring)
      : await goOn({ place, notes }, { monitoring, every, stop });
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    console.log(`NOT VALID (${error.code}): ${error.message}`);
    return 1;
  }
}

function secondsIn(name: string, text: string): number {
  if (/^[1-9]\d{0,4}$/.test(text)) return Number(text);
  throw new InputError(`--${name} ${quote(text)} is not a number of seconds`);
}

async function catchUp(start: MonitorState, monitoring: Monitoring): Promise<0> {
  for (let known = start; ; ) {
    const next = await step(known, monitoring);
    if (next.ahead === 0) return 0;
    known = next.known;
  }
}

interface GoingOn {
  readonly monitoring: Monitoring;
  /** Seconds between two polls. */
  readonly every: number;
  readonly stop: AbortSignal | undefined;
}

/** A log that does not respond is polled less often. Missing cosignatures may only be late. */
async function goOn(start: MonitorState, { monitoring, every, stop }: GoingOn): Promise<0> {
  let known = start;
  for (let failures = 0; stop?.aborted !== true; ) {
    let wait = every;
    try {
      const next = await step(known, monitoring);
      known = next.known;
      failures = 0;
      if (next.ahead > 0) continue;
    } catch (error) {
      const isLate = error instanceof Refusal && error.code === "quorum_not_met";
      if (!isLate && !(error instanceof InputError)) throw error;
      console.error(error.message);
      failures++;
      const asked = error instanceof StatusError ? error.retryAfterSeconds : 0;
      wait = Math.min(MAX_PAUSE_S, Math.max(asked, every * 2 ** Math.min(failures, 8)));
    }
    await pause(wait * 1000, undefined, stop === undefined ? {} : { signal: stop }).catch(() => undefined);
  }
  return 0;
}

/**
 * Checks the next entries and stores the result. Notes are written first, so that the state never covers more than they
 * do.
 * @returns the new state, and the number of entries that remain to be checked
 */
async function step(known: MonitorState, { log, given, policy, state, wallets, isStrict }: Monitoring) {
  // The keys are read each time, because the service may have rotated them.
  const { expected } = await readTrust(given, USAGE);
  const noted: Noted[] = [];
  const unknown: AnyEntry[] = [];
  const { place, ahead } = await follow(known.place, {
    log,
    policy,
    expected,
    fetchDocument: async (url) => fetchText(documentUrl(url, hostOf(given))),
    seen(entry, document) {
      if (!isKnown(entry)) {
        if (isStrict) throw new Refusal("malformed_entry", describeUnknown([entry]));
        unknown.push(entry);
      }
      const note = noteOf(entry, document);
      if (note !== null) noted.push(note);
    },
  });
  let { notes } = known;
  if (place !== known.place) {
    if (wallets !== undefined) notes = await appendNotes(wallets, notes ?? 0, noted);
    if (state !== undefined) await writeState(state, { place, notes });
  }
  if (unknown.length > 0) console.error(`warning: ${describeUnknown(unknown)}`);
  const more = ahead === 0 ? "" : `, ${ahead} more remain to be checked`;
  const { origin, size } = place;
  console.log(`ok: ${origin} has ${counted(size, "entry", "entries")}, ${size - known.place.size} of them new${more}`);
  return { known: { place, notes }, ahead };
}

const MOST_NAMED = 20;

function describeUnknown(entries: readonly AnyEntry[]): string {
  const names = entries.slice(0, MOST_NAMED).map(({ index, type }) => `${index} (${quote(type)})`);
  const more = entries.length > MOST_NAMED ? ` and ${entries.length - MOST_NAMED} more` : "";
  return `of a type that this version does not know, so its meaning was not checked: entry ${names.join(", ")}${more}. Update the package`;
}

/** The origin that publishes documents too large for the log. A folder has none of them. */
function hostOf({ source, issuer }: Monitoring["given"]): string {
  if (isUrl(source)) return source;
  if (issuer !== undefined) return parseIssuer(issuer).origin;
  throw new InputError("An entry's document is too large for the log, and a folder does not include it: add --issuer.");
}
