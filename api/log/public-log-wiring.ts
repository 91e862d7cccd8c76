import { createLogPlaces } from "./find-places.ts";
import type { LogStore } from "./log-store.ts";
import { createProveEntry } from "./prove-entries.ts";
import type { PublicLog } from "./public-log.ts";
import type { LogCheckpoints } from "./served-checkpoint.ts";
import { createStaticLog } from "./static-log.ts";

/** What everyone may read of the log. */
export function wirePublicLog(parts: {
  readonly generation: number;
  readonly store: LogStore;
  readonly checkpoints: LogCheckpoints;
}): PublicLog {
  const { store, checkpoints } = parts;
  return {
    ...parts,
    resources: createStaticLog(store),
    places: createLogPlaces(store, checkpoints),
    prove: createProveEntry({ store, checkpoints, elapsedMs: () => performance.now() }),
  };
}
