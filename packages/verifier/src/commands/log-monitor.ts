import { setTimeout as pause } from "node:timers/promises";
import { counted } from "../counted.ts";
import { fetchText, StatusError } from "../fetch-text.ts";
import { parseIssuer } from "../issuer.ts";
import { InputError, quote, Refusal } from "../refusal.ts";
import { type AnyEntry, isKnown } from "../tlog/entry.ts";
import { type CheckedLog, type Followed, follow, START } from "../tlog/follow.ts";
import { documentUrl, type LogFiles } from "../tlog/log-files.ts";
import type { Policy } from "../tlog/policy.ts";
import { type Noted, noteOf } from "../tlog/wallet-log.ts";
import { readArguments } from "./arguments.ts";
import { openLog, readPolicy } from "./log-files.ts";
import { readState, writeState } from "./monitor-state.ts";
import { isUrl } from "./source.ts";
import { readTrust, TRUST_TEXTS } from "./trust.ts";
import { openNotes, type WalletNotes } from "./wallet-notes.ts";

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
  readonly state: string | undefined;
  readonly notes: WalletNotes | null;
  /** Stop at an entry of unknown type. */
  readonly isStrict: boolean;
}

/**
 * The subcommand `log monitor`.
 * @param stop ends a monitor that runs without --once
 * @throws InputError for wrong usage, or for a source that cannot be read
 */
export async function monitorLog(args: readonly string[], stop?: AbortSignal): Promise<0 | 1> {
  const { policy, state, wallets, once, strict, ...given } = readArguments(args, {
    usage: USAGE,
    texts: [...TRUST_TEXTS, "policy", "state", "wallets", "every", "timeout"],
    flags: ["once", "strict"],
  });
  const every = secondsIn("every", given.every ?? "10");
  const timeoutMs = secondsIn("timeout", given.timeout ?? "30") * 1000;
  if (wallets !== undefined && state === undefined) throw new InputError(`--wallets requires --state.\n\n${USAGE}`);
  const trusted = await readPolicy(policy, USAGE);
  const kept = state === undefined ? null : await readState(state);
  const place = kept?.place ?? START;
  const notes = wallets === undefined ? null : await openNotes(wallets, place.size, kept?.notes ?? null);
  const monitoring = { log: openLog(given.source, timeoutMs), given, policy: trusted, state, notes, isStrict: strict };
  try {
    return once ? await catchUp(place, monitoring) : await goOn(place, { monitoring, every, stop });
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    console.log(`NOT VALID (${error.code}): ${error.message}`);
    return 1;
  } finally {
    await notes?.close();
  }
}

function secondsIn(name: string, text: string): number {
  if (/^[1-9]\d{0,4}$/.test(text)) return Number(text);
  throw new InputError(`--${name} ${quote(text)} is not a number of seconds`);
}

async function catchUp(start: CheckedLog, monitoring: Monitoring): Promise<0> {
  for (let place = start; ; ) {
    const next = await step(place, monitoring);
    if (next.ahead === 0) return 0;
    place = next.place;
  }
}

interface GoingOn {
  readonly monitoring: Monitoring;
  /** Seconds between two polls. */
  readonly every: number;
  readonly stop: AbortSignal | undefined;
}

/** A log that does not respond is polled less often. Missing cosignatures may only be late. */
async function goOn(start: CheckedLog, { monitoring, every, stop }: GoingOn): Promise<0> {
  let place = start;
  for (let failures = 0; stop?.aborted !== true; ) {
    let wait = every;
    try {
      const next = await step(place, monitoring);
      place = next.place;
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
 */
async function step(place: CheckedLog, { log, given, policy, state, notes, isStrict }: Monitoring): Promise<Followed> {
  // The keys are read each time, because the service may have rotated them.
  const { expected } = await readTrust(given, USAGE);
  const noted: Noted[] = [];
  const unknown: AnyEntry[] = [];
  const next = await follow(place, {
    log,
    policy,
    expected,
    fetchDocument: async (url) => fetchText(documentUrl(url, hostOf(given))),
    seen(entry, document) {
      if (!isKnown(entry)) {
        if (isStrict) throw new Refusal("malformed_entry", describeUnknown([entry]));
        unknown.push(entry);
      }
      const note = notes === null ? null : noteOf(entry, document);
      if (note !== null) noted.push(note);
    },
  });
  if (next.place !== place) {
    const bytes = (await notes?.add(noted)) ?? null;
    if (state !== undefined) await writeState(state, { place: next.place, notes: bytes });
    notes?.keep();
  }
  if (unknown.length > 0) console.error(`warning: ${describeUnknown(unknown)}`);
  const ahead = next.ahead === 0 ? "" : `, ${next.ahead} more remain to be checked`;
  const { origin, size } = next.place;
  console.log(`ok: ${origin} has ${counted(size, "entry", "entries")}, ${size - place.size} of them new${ahead}`);
  return next;
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
