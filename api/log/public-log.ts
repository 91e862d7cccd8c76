import type { LogPlaces } from "./log-place.ts";
import type { LogStore } from "./log-store.ts";
import type { ProveEntry } from "./prove-entries.ts";
import type { LogCheckpoints } from "./served-checkpoint.ts";
import type { StaticLog } from "./static-log.ts";

/** The log, as the routes read it. */
export interface PublicLog {
  /** The log that is written now. There are routes for it and for all before it. */
  readonly generation: number;
  readonly store: LogStore;
  readonly checkpoints: LogCheckpoints;
  readonly resources: StaticLog;
  readonly places: LogPlaces;
  readonly prove: ProveEntry;
}

/** Every log of the service, oldest first. */
export const generationsOf = ({ generation }: PublicLog): readonly number[] =>
  Array.from({ length: generation }, (_, place) => place + 1);
