import { LRUCache } from "lru-cache";
import { Agent, type Dispatcher } from "undici";
import { z } from "zod";
import { withDeadline } from "../platform/web/guarded-fetch/fetch.ts";
import type { CheckRun, CheckRuns, CheckSuite, CommitStatus, Listed, Reading, Unreadable } from "./evidence.ts";

export interface GithubOptions {
  /** The API's base URL without a trailing slash, such as `https://api.github.com` or another installation's. */
  readonly apiUrl: string;
  /** Raises the rate limit. It must not have access to private repositories: what it reads becomes public. */
  readonly token: string | null;
  /** Sent as `User-Agent`, which GitHub requires. */
  readonly userAgent: string;
}

const PER_PAGE = 100;
/** GitHub returns the runs of at most 1,000 check suites; anything past ten pages is `partial`. */
const MAX_PAGES = 10;
const MAX_REDIRECTS = 3;
/** The output of a single run can be 128 KiB. */
const MAX_PAGE_BYTES = 16 * 1024 * 1024;
const MAX_REMEMBERED = 500;

interface Page<Item> {
  readonly total: number;
  readonly items: readonly Item[];
}

/** The reason a list cannot be read. */
class NotRead extends Error {
  readonly outcome: Unreadable;

  constructor(outcome: Unreadable, cause?: unknown) {
    super(outcome, { cause });
    this.outcome = outcome;
  }
}

interface Remembered<Item> {
  readonly etag: string;
  readonly page: Page<Item>;
}

interface Parts<Item> extends GithubOptions {
  readonly agent: Dispatcher;
  readonly page: z.ZodType<Page<Item>>;
  readonly remembered: LRUCache<string, Remembered<Item>>;
}

interface ListOf<Item> extends Listed {
  readonly items: readonly Item[];
}

/** Reads all pages of the list at a path, which may include a query. Rejects with `NotRead`. */
type ReadList<Item> = (path: string, signal: AbortSignal) => Promise<ListOf<Item>>;

/**
 * Creates a reader for one of GitHub's lists that report a `total_count`; `key` names the member that contains the
 * items. A page that is unchanged (ETag) is not sent again and does not count against the rate limit.
 */
function createList<Item extends { readonly id: number }>(
  options: GithubOptions & { readonly agent: Dispatcher },
  key: string,
  item: z.ZodType<Item>,
): ReadList<Item> {
  const page = z
    .looseObject({ total_count: z.number().int().nonnegative(), [key]: z.array(item).max(PER_PAGE) })
    .transform((given) => ({ total: Number(given.total_count), items: given[key] as readonly Item[] }));
  const parts: Parts<Item> = { ...options, page, remembered: new LRUCache({ max: MAX_REMEMBERED }) };
  return async (path, signal) => {
    const { pages, ...list } = await readPages(parts, path, signal);
    if (pages === 1) return list;
    // Pages are read one by one, so the list counts as unchanged only if a second read returns the same items.
    const again = await readPages(parts, path, signal);
    return { ...list, changed: list.changed || again.changed || !isSame(list.items, again.items) };
  };
}

const isSame = (one: readonly { readonly id: number }[], other: readonly { readonly id: number }[]): boolean => {
  const sorted = [one, other].map((items) => JSON.stringify(items.toSorted((a, b) => a.id - b.id)));
  return sorted[0] === sorted[1];
};

async function readPages<Item extends { readonly id: number }>(
  parts: Parts<Item>,
  path: string,
  signal: AbortSignal,
): Promise<ListOf<Item> & { readonly pages: number }> {
  let url = new URL(`${parts.apiUrl}${path}`);
  const found = new Map<number, Item>();
  const totals = new Set<number>();
  let [pages, shown] = [0, 0];
  for (; pages < MAX_PAGES; ) {
    pages += 1;
    url.searchParams.set("per_page", String(PER_PAGE));
    url.searchParams.set("page", String(pages));
    const answer = await readPage(parts, url, signal);
    // A renamed repository redirects: read the following pages at the new URL.
    url = new URL(answer.url);
    const { total, items } = answer.page;
    totals.add(total);
    shown += items.length;
    for (const item of items) found.set(item.id, item);
    if (found.size >= total || items.length === 0) break;
  }
  const partial = found.size < Math.max(...totals);
  const changed = totals.size > 1 || shown !== found.size || found.size > Math.max(...totals);
  return { outcome: "read", items: [...found.values()], partial, changed, pages };
}

const REDIRECTS = new Set([301, 302, 307, 308]);

/** Returns one page and its URL after redirects. */
async function readPage<Item>(
  parts: Parts<Item>,
  first: URL,
  signal: AbortSignal,
): Promise<{ readonly page: Page<Item>; readonly url: URL }> {
  let url = first;
  for (let hops = 0; hops <= MAX_REDIRECTS; hops += 1) {
    const known = parts.remembered.get(url.href);
    const response = await send(parts, { url, etag: known?.etag ?? null }, signal);
    const { statusCode: status, headers } = response;
    if (status === 200) {
      const page = pageOf(parts, await text(response));
      if (typeof headers.etag === "string") parts.remembered.set(url.href, { etag: headers.etag, page });
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
  { agent, token, userAgent }: GithubOptions & { readonly agent: Dispatcher },
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

/** At a rate limit, GitHub answers 403 or 429, with no requests remaining or with a time to retry after. */
function outcomeOf({ statusCode: status, headers }: Dispatcher.ResponseData): Unreadable {
  if (status === 404 || status === 422) return "not_found";
  const isLimit = headers["x-ratelimit-remaining"] === "0" || headers["retry-after"] !== undefined;
  if (status === 429 || (status === 403 && isLimit)) return "rate_limited";
  return status === 401 || status === 403 || status === 451 ? "denied" : "unavailable";
}

/**
 * Returns the new location of a renamed repository. It must be on the API's origin because the request carries the
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

function pageOf<Item>({ page }: Parts<Item>, json: string): Page<Item> {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (cause) {
    throw new NotRead("bad_response", cause);
  }
  const parsed = page.safeParse(value);
  if (!parsed.success) throw new NotRead("bad_response", parsed.error);
  return parsed.data;
}

export interface GithubChecksOptions extends GithubOptions {
  /** The deadline for all pages of one list; set in tests. */
  readonly deadlineMs?: number;
}

const DEADLINE_MS = 20_000;

const id = z.number().int().nonnegative();

const RUN = z
  .object({
    id,
    name: z.string(),
    head_sha: z.string(),
    status: z.string(),
    conclusion: z.string().nullable(),
    app: z.object({ id, slug: z.string() }).nullish(),
    check_suite: z.object({ id }).nullish(),
  })
  .transform(
    ({ id, name, head_sha, status, conclusion, app, check_suite }): CheckRun => ({
      id,
      name,
      status,
      conclusion,
      headSha: head_sha.toLowerCase(),
      app: app ?? null,
      suite: check_suite?.id ?? null,
    }),
  );

const repository = z.object({ id, full_name: z.string() }).transform(({ id, full_name }) => ({ id, name: full_name }));
const headBranch = z.string().nullable();

const SUITE = z
  .object({
    id,
    head_branch: headBranch,
    pull_requests: z
      .array(
        z.object({
          head: z.object({ repo: z.object({ id }).nullish() }),
          base: z.object({ repo: z.object({ id }) }),
        }),
      )
      .nullish(),
  })
  .transform(
    ({ id, head_branch, pull_requests }): CheckSuite => ({
      id,
      headBranch: head_branch,
      workflow: null,
      pullRequests: (pull_requests ?? []).map(({ head, base }) => ({
        head: head.repo?.id ?? null,
        base: base.repo.id,
      })),
    }),
  );

/** A workflow run and the check suite it belongs to. */
const WORKFLOW_RUN = z
  .object({
    id,
    check_suite_id: id,
    workflow_id: id.nullish(),
    head_branch: headBranch,
    repository,
    head_repository: repository.nullish(),
  })
  .transform(({ id, check_suite_id, workflow_id, head_branch, repository: own, head_repository }) => ({
    id,
    suite: {
      id: check_suite_id,
      headBranch: head_branch,
      workflow: { id: workflow_id ?? null, repository: own, head: head_repository ?? null },
      pullRequests: [],
    } satisfies CheckSuite,
  }));

const STATUS = z.object({ id, context: z.string(), state: z.string() }) satisfies z.ZodType<CommitStatus>;

const NONE: ListOf<never> = { outcome: "read", items: [], partial: false, changed: false };

/** Creates a reader of a commit's checks in GitHub's REST API. */
export function createGithubChecks(options: GithubChecksOptions): CheckRuns {
  const github = { ...options, agent: new Agent({ connect: { timeout: 5_000 }, allowH2: false }) };
  const runs = createList(github, "check_runs", RUN);
  const suites = createList(github, "check_suites", SUITE);
  const workflowRuns = createList(github, "workflow_runs", WORKFLOW_RUN);
  const statuses = createList(github, "statuses", STATUS);
  const within = async <Item>(
    signal: AbortSignal,
    read: (deadline: AbortSignal) => Promise<ListOf<Item>>,
  ): Promise<Reading<Item>> => {
    try {
      return await withDeadline(options.deadlineMs ?? DEADLINE_MS, signal, read);
    } catch (cause) {
      signal.throwIfAborted();
      return { outcome: cause instanceof NotRead ? cause.outcome : "unavailable" };
    }
  };
  return {
    read: ({ repo, commitSha }, signal) =>
      within(signal, (deadline) => runs(`/repos/${repo}/commits/${commitSha}/check-runs?filter=latest`, deadline)),
    suites: ({ repo, commitSha }, of, signal) =>
      within(signal, async (deadline) => {
        const workflows = of.workflows
          ? await workflowRuns(`/repos/${repo}/actions/runs?head_sha=${commitSha}`, deadline)
          : NONE;
        const apps = of.apps ? await suites(`/repos/${repo}/commits/${commitSha}/check-suites`, deadline) : NONE;
        return {
          outcome: "read",
          items: [...workflows.items.map(({ suite }) => suite), ...apps.items],
          partial: workflows.partial || apps.partial,
          changed: workflows.changed || apps.changed,
        };
      }),
    statuses: ({ repo, commitSha }, signal) =>
      within(signal, (deadline) => statuses(`/repos/${repo}/commits/${commitSha}/status`, deadline)),
  };
}
