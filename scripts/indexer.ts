import { pino } from "pino";
import { runIndexer } from "../indexer/launch.ts";
import { LastingError } from "../indexer/ledger.ts";
import { parseSettings } from "../indexer/settings.ts";
import { COMPILE_CACHE } from "./embedded/compile-cache.ts";

const STOP_MS = 12_000;

// Ponder inherits the cache and restarts a second faster.
process.env.NODE_COMPILE_CACHE ??= COMPILE_CACHE;
const settings = parseSettings(process.env);
if ("problem" in settings) {
  console.error(`The indexer cannot start.\n${settings.problem}`);
  process.exit(1);
}

const stopping = new AbortController();
const stop = () => {
  stopping.abort();
  // An unresponsive database or node must not keep this process alive. Ponder is closed or killed well before.
  setTimeout(() => process.exit(0), STOP_MS).unref();
};
process.on("SIGTERM", stop).on("SIGINT", stop);
// The kernel closes standard input when the parent has ended for any reason.
if (process.env.SUPERVISED === "1") process.stdin.once("close", stop).once("end", stop).resume();

const log = pino({ name: "indexer", level: settings.logLevel });
await runIndexer(settings, log, stopping.signal).catch((error: unknown) => {
  if (!(error instanceof LastingError)) throw error;
  console.error(`The indexer cannot start.\n${error.message}`);
  process.exit(1);
});
process.exit(0);
