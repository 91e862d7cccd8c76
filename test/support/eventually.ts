import { isDeepStrictEqual } from "node:util";
import { expect, vi } from "vitest";

import { waitUntil } from "./wait-until.ts";

/** Reads until it is as wanted. Unlike `expect.poll`, it works where tests run concurrently. */
export async function eventually<T>(read: () => Promise<T> | T, wanted: T, limitMs = 30_000): Promise<void> {
  let last: T | undefined;
  const isThere = async () => {
    last = await read();
    return isDeepStrictEqual(last, wanted);
  };
  await waitUntil(isThere, limitMs, 50);
  expect(last).toEqual(wanted);
}

const HOUR_MS = 3_600_000;
const dateNow = Date.now;
const performanceNow = performance.now.bind(performance);

/** Sets the machine's clock back an hour, until `vi.restoreAllMocks`. It goes on from there as usual. */
export function setClockBack(): void {
  vi.spyOn(Date, "now").mockImplementation(() => dateNow() - HOUR_MS);
}

/** Makes everything that this process remembers that much older, until `vi.restoreAllMocks`. */
export function passTime(ms: number): void {
  const ahead = performance.now() - performanceNow() + ms;
  vi.spyOn(performance, "now").mockImplementation(() => performanceNow() + ahead);
}
