import { createLogPlaces } from "../log/find-places.ts";
import type { LogStore } from "../log/log-store.ts";
import { createProveEntry } from "../log/prove-entries.ts";
import type { PublicLog } from "../log/public-log.ts";
import type { LogCheckpoints } from "../log/served-checkpoint.ts";
import { createStaticLog } from "../log/static-log.ts";

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
