const EVERY_MS = 5_000;

/** Says what is done, how fast that was and when the rest will be. */
export interface Progress {
  /** A phase and its share of all the work; its line says how long it took. */
  readonly phase: <T>(name: string, share: number, work: (done: (part: number) => void) => Promise<T>) => Promise<T>;
  /** How many transfers there are, once that is known. */
  readonly count: (transfers: number) => void;
}

/** @param now in milliseconds, by a clock that nobody sets */
export function trackProgress(tell: (line: string) => void, now: () => number = () => performance.now()): Progress {
  const started = now();
  let [finished, transfers, told] = [0, 0, started];
  const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
  const forecast = (share: number): string => {
    const ms = now() - started;
    const end = new Date(Date.now() + ms / share - ms).toISOString().slice(0, 19);
    const rate = transfers === 0 ? "" : `, ${Math.round((transfers * share * 1000) / ms)} transfers/s`;
    return `${Math.round(share * 100)}% after ${seconds(ms)}${rate}, done about ${end}Z`;
  };
  return {
    count: (count) => {
      transfers = count;
    },
    phase: async (name, share, work) => {
      const begun = now();
      const result = await work((part) => {
        if (now() - told < EVERY_MS) return;
        told = now();
        tell(`${name.padEnd(14)} ${forecast(finished + share * part)}`);
      });
      finished += share;
      tell(`${name.padEnd(14)} ${seconds(now() - begun)}`);
      return result;
    },
  };
}
