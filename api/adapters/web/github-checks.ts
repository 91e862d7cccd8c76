import { Agent, type Dispatcher } from "undici";
import { z } from "zod";
import type { CheckRun, CheckRuns, CheckRunsReading } from "../../arbiter/check-runs.ts";
import { withDeadline } from "./guarded-fetch/slots.ts";

export interface GithubChecksOptions {
  /** The API's base URL without a trailing slash: `https://api.github.com`, another installation, or a stand-in. */
  readonly apiUrl: string;
  /** Raises the rate limit. It must not have access to private repositories: what it reads becomes public. */
  readonly token: string | null;
  /** Sent as `User-Agent`, which GitHub requires. */
  readonly userAgent: string;
  /** Covers all pages of one reading; set in tests. */
  readonly deadlineMs?: number;
}

const DEADLINE_MS = 20_000;
const PER_PAGE = 100;
/** GitHub shows the runs of at most 1,000 check suites; anything past ten pages is `partial`. */
const MAX_PAGES = 10;
const MAX_REDIRECTS = 3;
/** The output of a single run may take 128 KiB. */
const MAX_PAGE_BYTES = 16 * 1024 * 1024;
const MAX_REMEMBERED = 500;

const PAGE = z.object({
  total_count: z.number().int().nonnegative(),
  check_runs: z
    .array(
      z.object({
        id: z.number().int().nonnegative(),
        name: z.string(),
        head_sha: z.string(),
        status: z.string(),
        conclusion: z.string().nullable(),
      }),
    )
    .max(PER_PAGE),
});

interface Page {
  readonly total: number;
  readonly runs: readonly CheckRun[];
}

type Unreadable = Exclude<CheckRunsReading["outcome"], "read">;

/** Why a commit's runs cannot be read. */
class NotRead extends Error {
  readonly outcome: Unreadable;

  constructor(outcome: Unreadable, cause?: unknown) {
    super(outcome, { cause });
    this.outcome = outcome;
  }
}

interface Remembered {
  readonly etag: string;
  readonly page: Page;
}

interface Parts extends GithubChecksOptions {
  readonly agent: Dispatcher;
  readonly remembered: Map<string, Remembered>;
}

/**
 * GitHub's check runs for a commit (https://docs.github.com/en/rest/checks/runs). A page that is unchanged (ETag) is
 * not sent again and does not count against the rate limit.
 */
export function createGithubChecks(options: GithubChecksOptions): CheckRuns {
  const agent = new Agent({ connect: { timeout: 5_000 }, allowH2: false });
  const parts: Parts = { ...options, agent, remembered: new Map() };
  return {
    async read(commit, signal) {
      try {
        return await withDeadline(options.deadlineMs ?? DEADLINE_MS, signal, (deadline) =>
          readPages(parts, commit, deadline),
        );
      } catch (cause) {
        signal.throwIfAborted();
        return { outcome: cause instanceof NotRead ? cause.outcome : "unavailable" };
      }
    },
  };
}

async function readPages(
  parts: Parts,
  { repo, commitSha }: { readonly repo: string; readonly commitSha: string },
  signal: AbortSignal,
): Promise<CheckRunsReading> {
  let url = new URL(`${parts.apiUrl}/repos/${repo}/commits/${commitSha}/check-runs`);
  const runs = new Map<number, CheckRun>();
  for (let number = 1; number <= MAX_PAGES; number += 1) {
    url.search = `filter=latest&per_page=${PER_PAGE}&page=${number}`;
    const answer = await readPage(parts, url, signal);
    // A renamed repository has moved for the following pages too.
    url = new URL(answer.url);
    for (const run of answer.page.runs) runs.set(run.id, run);
    if (runs.size >= answer.page.total) return { outcome: "read", runs: [...runs.values()], partial: false };
    if (answer.page.runs.length === 0) break;
  }
  return { outcome: "read", runs: [...runs.values()], partial: true };
}

const REDIRECTS = new Set([301, 302, 307, 308]);

/** One page, and its URL after redirects. */
async function readPage(parts: Parts, first: URL, signal: AbortSignal): Promise<{ page: Page; url: URL }> {
  let url = first;
  for (let hops = 0; hops <= MAX_REDIRECTS; hops += 1) {
    const known = parts.remembered.get(url.href);
    const response = await send(parts, { url, etag: known?.etag ?? null }, signal);
    const { statusCode: status, headers } = response;
    if (status === 200) {
      const page = pageOf(await text(response));
      remember(parts, url, { etag: headers.etag, page });
      return { page, url };
    }
    await response.body.dump();
    if (status === 304 && known !== undefined) return { page: known.page, url };
    if (!REDIRECTS.has(status)) throw new NotRead(outcomeOf(response));
    url = moved(url, headers.location);
  }
  throw new NotRead("bad_response");
}

async function send(
  { agent, token, userAgent }: Parts,
  { url, etag }: { readonly url: URL; readonly etag: string | null },
  signal: AbortSignal,
): Promise<Dispatcher.ResponseData> {
  return agent.request({
    origin: url.origin,
    path: `${url.pathname}${url.search}`,
    method: "GET",
    headers: {
      accept: "application/vnd.github+json",
      "x-github-api-version": "2022-11-28",
      "user-agent": userAgent,
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      ...(etag === null ? {} : { "if-none-match": etag }),
    },
    signal,
  });
}

/** GitHub answers 403 or 429 at a limit, with none remaining or a time to come back. */
function outcomeOf({ statusCode: status, headers }: Dispatcher.ResponseData): Unreadable {
  if (status === 404 || status === 422) return "not_found";
  const isLimit = headers["x-ratelimit-remaining"] === "0" || headers["retry-after"] !== undefined;
  if (status === 429 || (status === 403 && isLimit)) return "rate_limited";
  return status === 401 || status === 403 || status === 451 ? "denied" : "unavailable";
}

/**
 * The new location of a renamed repository, accepted only on the API's own origin because the request carries the
 * token.
 */
function moved(from: URL, location: string | string[] | undefined): URL {
  if (typeof location !== "string" || !URL.canParse(location, from.href)) throw new NotRead("bad_response");
  const to = new URL(location, from.href);
  if (to.origin !== from.origin) throw new NotRead("bad_response");
  to.search = from.search;
  return to;
}

async function text({ body }: Dispatcher.ResponseData): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body as AsyncIterable<Uint8Array>) {
    bytes += chunk.length;
    if (bytes > MAX_PAGE_BYTES) throw new NotRead("bad_response");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function pageOf(json: string): Page {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (cause) {
    throw new NotRead("bad_response", cause);
  }
  const parsed = PAGE.safeParse(value);
  if (!parsed.success) throw new NotRead("bad_response", parsed.error);
  return {
    total: parsed.data.total_count,
    runs: parsed.data.check_runs.map(({ id, name, head_sha, status, conclusion }) => ({
      id,
      name,
      status,
      conclusion,
      headSha: head_sha.toLowerCase(),
    })),
  };
}

function remember(
  { remembered }: Parts,
  url: URL,
  { etag, page }: { readonly etag: string | string[] | undefined; readonly page: Page },
): void {
  if (typeof etag !== "string") return;
  remembered.delete(url.href);
  const [oldest] = remembered.keys();
  if (remembered.size >= MAX_REMEMBERED && oldest !== undefined) remembered.delete(oldest);
  remembered.set(url.href, { etag, page });
}
