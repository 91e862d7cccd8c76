import { isDeepStrictEqual } from "node:util";
import { expect } from "vitest";
import { waitUntil } from "../../scripts/embedded/wait-until.ts";

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
