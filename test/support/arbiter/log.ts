import canonicalize from "canonicalize";
import { send } from "../payments/requests.ts";
import { sha256 } from "./rows.ts";

/** A line of `/arbiter/log`. */
interface Entry {
  readonly index: number;
  readonly id: string;
  readonly sha256: string;
  readonly verdict_url: string;
}

interface LogPage {
  readonly verdicts: readonly Entry[];
  readonly next: string | null;
}

/**
 * Follows the public log from its newest entry to its first, as anyone can: fetches and hashes every document, and
 * compares it with its entry and with what the next one says. Returns how many pages and documents there were, and what
 * is wrong.
 */
export async function walkLog(baseUrl: string): Promise<{ pages: number; documents: number; faults: string[] }> {
  const faults: string[] = [];
  let [pages, documents] = [0, 0];
  let later: { readonly index: number; readonly previous_sha256: string | null } | null = null;
  for (let next: string | null = `${baseUrl}/arbiter/log`; next !== null; pages++) {
    const page = (await send(next)).body as unknown as LogPage;
    const texts = await Promise.all(page.verdicts.map(async ({ verdict_url }) => (await send(verdict_url)).text));
    for (const [at, { index, sha256: stated }] of page.verdicts.entries()) {
      const { log, ...document } = JSON.parse(texts[at] ?? "");
      const hash = sha256(canonicalize({ ...document, log }) ?? "");
      if (log.index !== index) faults.push(`${index}: its document says ${log.index}`);
      if (hash !== stated) faults.push(`${index}: its document has another hash than its entry`);
      if (later !== null && later.index !== index + 1) faults.push(`${index}: followed by ${later.index}`);
      if (later !== null && later.previous_sha256 !== hash) faults.push(`${index}: ${later.index} names another hash`);
      later = log;
      documents++;
    }
    next = page.next;
  }
  if (later !== null && later.index !== 1) faults.push(`the first is ${later.index}`);
  if (later !== null && later.previous_sha256 !== null) faults.push("the first one names another before it");
  return { pages, documents, faults };
}
