/**
 * Caches the last `limit` results of a pure but costly rendering. The key must cover everything the result depends on.
 */
export function remember<Value>(limit: number): (key: string, make: () => Value) => Value {
  const kept = new Map<string, Value>();
  return (key, make) => {
    const known = kept.get(key);
    if (known !== undefined) return known;
    const value = make();
    const [oldest] = kept.keys();
    if (kept.size >= limit && oldest !== undefined) kept.delete(oldest);
    kept.set(key, value);
    return value;
  };
}
