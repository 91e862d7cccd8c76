import { LRUCache } from "lru-cache";

const REMEMBERED = 10_000;

/** Remembers names for a while; of very many, the latest. */
export function createShortMemory(forMs: number) {
  const names = new LRUCache<string, true>({ max: REMEMBERED, ttl: forMs });
  return {
    remember: (name: string): void => void names.set(name, true),
    has: (name: string): boolean => names.has(name),
  };
}
