/** How long what was announced is expected, in milliseconds. */
const EXPECTED_FOR_MS = 100;

/** Names that were announced a moment ago and have not come yet. */
export function createComing(now: () => number = () => performance.now()) {
  const announced = new Map<string, number>();
  const forget = () => {
    for (const [name, at] of announced) {
      if (now() - at < EXPECTED_FOR_MS) return;
      announced.delete(name);
    }
  };
  return {
    announce(name: string): void {
      forget();
      announced.delete(name);
      announced.set(name, now());
    },
    /** It has come, or will not. */
    strike: (name: string): void => void announced.delete(name),
    count(): number {
      forget();
      return announced.size;
    },
  };
}
