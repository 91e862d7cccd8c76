import { fetchText } from "../fetch-text.ts";
import { InputError, quote, Refusal } from "../refusal.ts";
import { parseUnsignedJson } from "../strict-json.ts";
import type { Expectation } from "../verify-document.ts";
import { follow, START } from "./follow.ts";
import { isOutdated, type KeptLog, type KeptLogs } from "./kept-log.ts";
import { documentUrl, httpLog } from "./log-files.ts";
import type { Policy } from "./policy.ts";
import { TILE_WIDTH } from "./tile.ts";
import { entriesOf, hiddenBy, listIn, type Noted, noteOf, type WalletEntries } from "./wallet-log.ts";

/** A wallet, and the parameters for comparing its record with its entries in the log. */
export interface CheckLeftOut {
  readonly wallet: string;
  /** Its logs of this service are read, each at the address in the policy, or else below the service's own. */
  readonly policy: Policy;
  readonly expected: Expectation;
  /** The service's origin. */
  readonly baseUrl: string;
  /** Fetches the wallet's current record or credential from the service. */
  readonly fetchRecord: () => Promise<string | Uint8Array>;
  /** The state of earlier reads. */
  readonly kept: KeptLogs;
  /** The maximum number of new entries to read, over all logs; each is about 1.4 KB. */
  readonly mostEntries: number;
  /** The maximum time to read the logs once. */
  readonly timeoutMs: number;
  /** Waits before an apparent omission is checked again. */
  readonly pause: () => Promise<unknown>;
}

export interface LeftOutReport {
  /**
   * `nothing`: the record shows every FAIL that counts in the whole log. `hidden`: it omits one, or shows a different
   * result from the log. `incomplete`: no omission was found, but the log was not read to its end, or it has entries of
   * unknown types. `refused`: the log is not genuine.
   */
  readonly state: "nothing" | "hidden" | "incomplete" | "refused";
  readonly reason: string;
  readonly hidden: readonly string[];
  /** The number of entries that were compared. */
  readonly entries: number;
}

export interface LeftOut {
  readonly report: LeftOutReport;
  readonly kept: KeptLogs;
  /** The response that was compared; a different one is not covered by this report. Null if there was none. */
  readonly record: string | Uint8Array | null;
}

/**
 * Compares a wallet's record with the log. Only the log can show that a record omits something. The log is read first,
 * so that a later entry is in the record alone. A reversal may reach the record before the log, so an apparent omission
 * is checked twice.
 */
export async function checkLeftOut(given: CheckLeftOut): Promise<LeftOut> {
  const reading = createReading(given);
  try {
    const first = await compare(given, reading);
    if (first.report.hidden.length === 0) return { ...first, kept: reading.kept };
    await given.pause();
    return { ...(await compare(given, reading)), kept: reading.kept };
  } catch (error) {
    const isGenuine = error instanceof InputError;
    if (!isGenuine && !(error instanceof Refusal)) throw error;
    const state = isGenuine ? "incomplete" : "refused";
    const reason = isGenuine ? error.message : `${(error as Refusal).code}: ${error.message}`;
    return {
      report: { state, reason: reason.slice(0, 2_000), hidden: [], entries: 0 },
      kept: reading.kept,
      record: null,
    };
  }
}

async function compare(given: CheckLeftOut, reading: Reading) {
  const unread = await reading.readAll();
  const record = await given.fetchRecord();
  const listing = listIn(parseUnsignedJson(record));
  if (listing === null) throw new InputError("the service's response is not a verification record or a credential");
  if (listing.wallet.toLowerCase() !== given.wallet.toLowerCase())
    throw new InputError(`the service's response is about ${quote(listing.wallet)}`);
  const logs = [...reading.kept.values()];
  const { certificates, unknown } = await entriesOf(
    given.wallet,
    logs.flatMap(({ notes }) => notes),
  );
  const hidden = hiddenBy(listing, certificates, new Date());
  const entries = logs.reduce((sum, { place }) => sum + place.size, 0);
  return { record, report: reportOf({ hidden, unknown, entries, unread }) };
}

interface Compared extends Pick<LeftOutReport, "hidden" | "entries"> {
  readonly unknown: WalletEntries["unknown"];
  /** The reason why the logs were not read to their ends; null if they were. */
  readonly unread: string | null;
}

function reportOf({ hidden, unknown, entries, unread }: Compared): LeftOutReport {
  const report = (state: LeftOutReport["state"], reason: string): LeftOutReport => ({
    ...{ state, reason: reason.slice(0, 2_000), hidden, entries },
  });
  if (hidden.length > 0)
    return report("hidden", `The log has what the record does not show: ${hidden.join(" \u00b7 ")}`);
  if (unread !== null) return report("incomplete", unread);
  const [first] = unknown;
  if (first !== undefined)
    return report("incomplete", `Entry ${first.index} has a type unknown to this version: ${quote(first.entry_type)}.`);
  return report("nothing", `The record shows each FAIL that counts in the log's ${entries} entries.`);
}

/** Small, so that most of the progress survives if a log stops responding. */
const BUNDLES_AT_ONCE = 8;

type Reading = ReturnType<typeof createReading>;

function createReading({ policy, expected, baseUrl, ...given }: CheckLeftOut) {
  const own = policy.logs.filter((log) => isOf(baseUrl, log));
  const kept = new Map<string, KeptLog>(
    [...given.kept].filter(([origin, log]) => own.some(({ key }) => key.name === origin) && !isOutdated(log)),
  );
  let most = given.mostEntries;
  let until = 0;
  /** Returns the milliseconds left. @throws InputError if there are none */
  const left = (): number => {
    const ms = Math.floor(until - performance.now());
    if (ms < 1) throw new InputError(`the log could not be read in ${given.timeoutMs / 1000} seconds`);
    return ms;
  };
  const sizeOf = (origin: string) => kept.get(origin)?.place.size ?? 0;

  async function readLog(log: Policy["logs"][number]): Promise<string | null> {
    const origin = log.key.name;
    const before = sizeOf(origin);
    const url = log.url ?? `${baseUrl}/log`;
    const reading = {
      ...{ log: httpLog(url, left), policy: { ...policy, logs: [log] }, expected },
      // Documents that are too large for the log are fetched from its host only.
      fetchDocument: async (at: string) => fetchText(documentUrl(at, url), { timeoutMs: left() }),
    };
    try {
      for (let bundles = Math.ceil(most / TILE_WIDTH); bundles > 0; bundles -= BUNDLES_AT_ONCE) {
        const { place, notes } = kept.get(origin) ?? { place: START, notes: [] };
        const fresh: Noted[] = [];
        const next = await follow(place, {
          ...{ ...reading, mostBundles: Math.min(bundles, BUNDLES_AT_ONCE) },
          seen(entry, document) {
            const note = noteOf(entry, document);
            if (note !== null) fresh.push(note);
          },
        });
        if (next.place !== place) kept.set(origin, { place: next.place, notes: [...notes, ...fresh] });
        if (next.ahead === 0) return null;
      }
      return `The log was read up to entry ${sizeOf(origin)}; it has more, to be read next time.`;
    } catch (error) {
      // Missing cosignatures may only be late; a log that was read before is binding even then.
      const isLate = error instanceof Refusal && error.code === "quorum_not_met";
      if (!isLate && !(error instanceof InputError)) throw error;
      return `The log was read up to entry ${sizeOf(origin)}: ${error.message}`;
    } finally {
      most = Math.max(0, most - (sizeOf(origin) - before));
    }
  }

  return {
    kept,
    /** Returns the reason why a log was not read to its end; null if each was. */
    async readAll(): Promise<string | null> {
      if (own.length === 0) return `The policy names no log of ${baseUrl}.`;
      until = performance.now() + given.timeoutMs;
      const reasons: (string | null)[] = [];
      for (const log of own) reasons.push(await readLog(log));
      return reasons.find((reason) => reason !== null) ?? null;
    },
  };
}

/** A policy may also name other services' logs. A log's name is an address without its scheme. */
function isOf(baseUrl: string, { key, url }: Policy["logs"][number]): boolean {
  const { host, origin } = new URL(baseUrl);
  return `${key.name}/`.startsWith(`${host}/`) || (url !== null && URL.canParse(url) && new URL(url).origin === origin);
}
