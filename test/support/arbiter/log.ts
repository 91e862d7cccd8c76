import canonicalize from "canonicalize";
import { send } from "../payments/requests.ts";
import { sha256 } from "./rows.ts";

/** A line of `/arbiter/log`. */
interface Listed {
  readonly id: string;
  readonly sha256: string;
  readonly issued_at: string;
  readonly verdict_url: string;
}

interface Page {
  readonly verdicts: readonly Listed[];
  readonly next: string | null;
}

/** The public list of verdicts, from the newest to the first: how many pages, and every line with the hash of its document. */
export async function walkVerdicts(baseUrl: string) {
  const verdicts: (Listed & { readonly hash: string })[] = [];
  let pages = 0;
  for (let next: string | null = `${baseUrl}/arbiter/log`; next !== null; pages++) {
    const page = (await send(next)).body as unknown as Page;
    const hashed = page.verdicts.map(async (one) => {
      const { text } = await send(one.verdict_url);
      return { ...one, hash: sha256(canonicalize(JSON.parse(text)) ?? "") };
    });
    verdicts.push(...(await Promise.all(hashed)));
    next = page.next;
  }
  return { pages, verdicts };
}
