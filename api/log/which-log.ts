import type { Generation } from "./log-store.ts";

/** Why this log cannot be the one that the settings name, or null. */
export function unfit(own: Omit<Generation, "startedAt">, known: readonly Generation[]): string | null {
  const { generation, origin, vkey } = own;
  const newest = known.at(-1)?.generation ?? 0;
  if (generation < newest)
    return `LOG_GENERATION is ${generation}, and the database has begun generation ${newest}: set LOG_GENERATION=${newest}.`;
  if (generation > newest + 1)
    return `LOG_GENERATION is ${generation}, and the newest log in the database is generation ${newest}: set LOG_GENERATION=${newest + 1} to begin the next one.`;
  const found = known.find((one) => one.generation === generation);
  const elsewhere = known.find((one) => one.generation !== generation && one.origin === origin);
  if (elsewhere !== undefined)
    return `the origin ${origin} belongs to generation ${elsewhere.generation} of the log: take LOG_ORIGIN out of the settings, or give generation ${generation} another one.`;
  if (found !== undefined && found.origin !== origin)
    return `the log's origin is ${found.origin}, and the settings make it ${origin}. To continue the log at another address, set LOG_ORIGIN=${found.origin}; otherwise restore BASE_URL, or end this log with LOG_GENERATION=${generation + 1}.`;
  if (found !== undefined && found.vkey !== vkey)
    return `the log's key is ${found.vkey}, and the settings make it ${vkey}: restore LOG_KEY (without it, the key follows from SIGNING_KEY), or end this log with LOG_GENERATION=${generation + 1}.`;
  return null;
}
