import { vi } from "vitest";

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
