const REMEMBERED = 10_000;

/** Remembers names for a while; of very many, the latest. */
export function createShortMemory(forMs: number, now: () => number = Date.now) {
  const until = new Map<string, number>();
  return {
    remember(name: string): void {
      until.delete(name);
      until.set(name, now() + forMs);
      const [oldest] = until.keys();
      if (until.size > REMEMBERED && oldest !== undefined) until.delete(oldest);
    },
    has: (name: string): boolean => now() < (until.get(name) ?? 0),
  };
}
