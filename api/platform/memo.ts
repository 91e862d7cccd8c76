import { LRUCache } from "lru-cache";

/**
 * Caches the last `limit` results of a pure but costly computation. The key must include everything on which the result
 * depends.
 */
export function memoize<Value extends object | string>(
  limit: number,
): (key: string, make: (key: string) => Value) => Value {
  const kept = new LRUCache<string, Value, (key: string) => Value>({
    max: limit,
    memoMethod: (key, _stale, { context: make }) => make(key),
  });
  return (key, make) => kept.memo(key, { context: make });
}

/** Returns a function that computes a value on its first call and then returns it again. */
export function once<Value>(make: () => Value): () => Value {
  let made: { readonly value: Value } | null = null;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}
