import type { LogPlace, LogPlaces } from "./log-place.ts";
import type { LoggedEntry, LogStore } from "./log-store.ts";
import type { LogCheckpoints } from "./served-checkpoint.ts";

export function createLogPlaces(
  store: Pick<LogStore, "findAll" | "at">,
  checkpoints: Pick<LogCheckpoints, "witnesses">,
): LogPlaces {
  const placed = async (entry: LoggedEntry): Promise<LogPlace> => {
    const witnesses = await checkpoints.witnesses(entry.generation);
    const saw = witnesses.filter(({ size }) => size !== null && size > entry.index);
    return { ...entry, witnesses: saw.map(({ name }) => name) };
  };
  return {
    of: async (ref, types) => Promise.all((await store.findAll(ref, types)).map(placed)),
    async at(generation, index) {
      const entry = await store.at(generation, index);
      return entry === null ? null : placed(entry);
    },
  };
}
