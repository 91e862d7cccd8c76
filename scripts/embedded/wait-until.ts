import { setTimeout as delay } from "node:timers/promises";

/** Polls until `check` returns true. A rejection counts as false. Returns false once the time is up. */
export async function waitUntil(
  check: () => Promise<boolean> | boolean,
  limitMs: number,
  everyMs = 25,
): Promise<boolean> {
  const deadline = Date.now() + limitMs;
  do {
    if (
      await Promise.resolve()
        .then(check)
        .catch(() => false)
    )
      return true;
    await delay(everyMs);
  } while (Date.now() < deadline);
  return false;
}
