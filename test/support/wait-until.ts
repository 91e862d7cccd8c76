import { waitUntil as wait } from "../../scripts/embedded/wait-until.ts";

const SILENT_MS = 20_000;

/** As the service's own programs wait. What takes longer than 20 seconds says what it waits for, and why it is not there. */
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
