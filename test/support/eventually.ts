import { isDeepStrictEqual } from "node:util";
import { expect, vi } from "vitest";

import { waitUntil } from "./wait-until.ts";

/** Reads until the value is as wanted. Unlike `expect.poll`, it works in concurrent tests. */
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

/** Sets the machine's clock back an hour until `vi.restoreAllMocks`. It runs normally from there. */
export function setClockBack(): void {
  vi.spyOn(Date, "now").mockImplementation(() => dateNow() - HOUR_MS);
}

/** Ages everything in this process's memory by this time, until `vi.restoreAllMocks`. */
export function passTime(ms: number): void {
  const ahead = performance.now() - performanceNow() + ms;
  vi.spyOn(performance, "now").mockImplementation(() => performanceNow() + ahead);
}
