import { setTimeout as pause } from "node:timers/promises";
import { fetchText } from "../fetch-text.ts";
import { InputError, quote, Refusal } from "../refusal.ts";
import { follow, type Place, START } from "../tlog/follow.ts";
import { readArguments } from "./arguments.ts";
import { openLog, readPolicy } from "./log-files.ts";
import { readPlace, writePlace } from "./monitor-state.ts";
import { isUrl } from "./source.ts";
import { readTrust, TRUST_TEXTS } from "./trust.ts";

const USAGE = `Follows a log, and checks that it only grows and that every new entry is genuine.

  agent-payment-trust-verifier log monitor <URL of the log | folder> --policy <file | URL>
    [--state <file>] [--once] [--every <seconds>] [--issuer <origin | did:web:…>] [--jwks <file | URL>]

--state keeps what was checked, so that the next run goes on there; without it, each run begins at entry 0. --once stops at
the newest checkpoint; otherwise the log is asked again every 10 seconds, or every --every.

Exit codes: 0 all is well (--once); 1 a fork, a changed entry or a bad signature: the output says which; 2 usage error, or
the log cannot be read (--once).`;

const MAX_PAUSE_S = 300;

/** The sub-command `log monitor`. @throws InputError for wrong usage, or for what cannot be read */
export async function monitorLog(args: readonly string[]): Promise<0 | 1> {
  const {
    policy,
    state,
    once,
    every = "10",
    ...given
  } = readArguments(args, {
    usage: USAGE,
    texts: [...TRUST_TEXTS, "policy", "state", "every"],
    flags: ["once"],
  });
  const seconds = Number(every);
  if (!/^[1-9]\d{0,4}$/.test(every)) throw new InputError(`--every ${quote(every)} is not a number of seconds`);
  const trusted = await readPolicy(policy, USAGE);
  const log = openLog(given.source);
  let place: Place = state === undefined ? START : ((await readPlace(state)) ?? START);
  const fetchDocument = (url: string) => {
    const isOwn = isUrl(given.source) && URL.canParse(url) && new URL(url).origin === new URL(given.source).origin;
    if (!isOwn) throw new InputError(`${quote(url)} is not below the log's own address, and is not fetched`);
    return fetchText(url);
  };
  for (let failures = 0; ; ) {
    try {
      // The keys are read each time: the service may have changed its own.
      const { expected } = await readTrust(given, USAGE);
      const next = await follow(place, { log, policy: trusted, expected, fetchDocument });
      if (state !== undefined && next !== place) await writePlace(state, next);
      console.log(`ok: ${next.origin} has ${next.size} entries, ${next.size - place.size} of them new`);
      place = next;
      failures = 0;
    } catch (error) {
      // The witnesses may only be late.
      const isLate = error instanceof Refusal && error.code === "quorum_not_met" && !once;
      if (error instanceof Refusal && !isLate) {
        console.log(`NOT VALID (${error.code}): ${error.message}`);
        return 1;
      }
      if (once || !(error instanceof InputError || error instanceof Refusal)) throw error;
      console.error(error.message);
      failures++;
    }
    if (once) return 0;
    await pause(Math.min(MAX_PAUSE_S, seconds * 2 ** Math.min(failures, 8)) * 1000);
  }
}
