import { waitUntil as wait } from "../../scripts/embedded/wait-until.ts";

const SILENT_MS = 20_000;

/** Waits like the service's own programs. After 20 seconds it prints the condition and its last result. */
export async function waitUntil(
  check: () => Promise<boolean> | boolean,
  limitMs: number,
  everyMs = 25,
): Promise<boolean> {
  let last: unknown = "false";
  const noticed = async () => {
    try {
      return await check();
    } catch (error) {
      last = error;
      return false;
    }
  };
  const notice = setInterval(
    () => console.error(`still waiting for ${String(check).replace(/\s+/g, " ")}; the last answer was`, last),
    SILENT_MS,
  );
  try {
    return await wait(noticed, limitMs, everyMs);
  } finally {
    clearInterval(notice);
  }
}
