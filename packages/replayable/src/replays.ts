import { decodeBytes } from "../../escrow/src/bytes.ts";
import { canonical } from "../../escrow/src/canonical.ts";
import { type Answer, type AnswerStore, memoryAnswers } from "./answer-store.ts";

/** A payment as in a request, decoded and not verified. */
interface SentPayment {
  /** The same for every header with this authorization and signature. */
  readonly id: string;
  /** The same for every header with the same content, in any spelling. */
  readonly digest: string;
  /** The resource that the payment names, if any. */
  readonly resource: unknown;
}

/** Parses `PAYMENT-SIGNATURE` or `X-PAYMENT`; null for an invalid payment, which the middleware refuses. */
async function readPayment(header: string): Promise<SentPayment | null> {
  const decoded = decode(header);
  if (!isRecord(decoded) || !isRecord(decoded.payload)) return null;
  const [id, digest] = await Promise.all([sha256(canonical(decoded.payload)), sha256(canonical(decoded))]);
  return { id, digest, resource: isRecord(decoded.resource) ? decoded.resource.url : decoded.resource };
}

/** Returns whether a response reports that its payment has settled: no other may be stored. */
function isSettled(status: number, header: string | null): boolean {
  if (status < 200 || status >= 400 || header === null) return false;
  const decoded = decode(header);
  return isRecord(decoded) && decoded.success === true;
}

/** Returns the SHA-256 in hex. */
async function sha256(content: string | Uint8Array<ArrayBuffer>): Promise<string> {
  const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function decode(header: string): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(decodeBytes(header))) as unknown;
  } catch {
    return null;
  }
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export interface ReplayableOptions {
  /** The store for responses; by default in memory, shared by all routes of the process. */
  readonly store?: AnswerStore;
  /**
   * The time for which a response can be fetched again, in milliseconds; default 15 minutes. Anyone who sees the
   * settled transaction can reconstruct its payment, so do not keep responses longer than a buyer retries.
   */
  readonly keepMs?: number;
  /**
   * Returns whether the resource that a payment names (`resource.url`) is the one at this URL. By default their paths
   * are compared, and their queries if the resource has one. Provide your own if a proxy rewrites paths.
   */
  readonly isFor?: (resource: string, url: string) => boolean;
  /** Reports a store that failed; `console.error` by default. */
  readonly log?: (message: string, cause: unknown) => void;
}

/** One request, as the framework provides it. */
interface Asked {
  readonly method: string;
  readonly url: string;
  readonly header: (name: string) => string | null | undefined;
  /** Returns the whole body; null if it is too large to compare, or cannot be read. */
  readonly body: () => Promise<Uint8Array<ArrayBuffer> | null>;
  /** Runs the middleware. With `unpaid`, it sees no payment. */
  readonly serve: (how: "paid" | "unpaid") => Promise<Served>;
}

/** The middleware's response. */
export interface Served {
  readonly status: number;
  readonly header: (name: string) => string | null | undefined;
  readonly read: () => Promise<Answer>;
}

/** Answers a request: null if the middleware's response is the answer. */
type Replays = (asked: Asked) => Promise<Response | null>;

/** The largest request body that is compared, and response body that is stored, in bytes. */
export const MAX_BYTES = 1024 * 1024;

const KEEP_MS = 15 * 60_000;
/** The time that a copy of a payment waits for the one before it. */
const WAIT_MS = 60_000;

/** Request headers on which a response may depend: credentials, and the form of the body. */
const COMPARED = ["authorization", "cookie", "content-type"];

/** Shared by all routes of this process. */
const sharedMemory = memoryAnswers();

/** Stores the responses to settled payments, and returns each to the same payment for the same request only. */
export function createReplays(options: ReplayableOptions): Replays {
  const { store = sharedMemory, keepMs = KEEP_MS, isFor = isSameResource, log = console.error } = options;
  /** Requests in progress, by payment. */
  const busy = new Map<string, Promise<unknown>>();
  return async (asked) => {
    const header = asked.header("payment-signature") || asked.header("x-payment");
    const payment = header ? await readPayment(header) : null;
    if (payment === null) return passed(asked, "paid");
    if (payment.resource !== undefined && !isFor(String(payment.resource), asked.url)) return passed(asked, "unpaid");
    const body = await asked.body();
    if (body === null) return passed(asked, "paid");
    const key = await keyOf(asked, payment, body);
    if (!(await isFree(busy, payment.id))) return later("Another request with this payment is still being answered.");
    const work = replayed(asked, key);
    const settled = work.then(
      () => undefined,
      () => undefined,
    );
    busy.set(payment.id, settled);
    void settled.then(() => busy.delete(payment.id));
    return work;
  };

  async function replayed(asked: Asked, key: string): Promise<Response | null> {
    try {
      const stored = await store.get(key);
      if (stored !== null) return again(stored);
    } catch (cause) {
      // If it were served now, a settled payment would be refused, and its buyer would pay again.
      log("The store of paid answers cannot be read.", cause);
      return later("The store of paid answers cannot be read. Nothing was charged for this request.");
    }
    const served = await asked.serve("paid");
    const settlement = served.header("payment-response") ?? served.header("x-payment-response") ?? null;
    if (!isSettled(served.status, settlement)) return null;
    const answer = await served.read();
    if (answer.body.length > MAX_BYTES) return null;
    await store.set(key, answer, keepMs).catch((cause) => log("A paid answer was not stored.", cause));
    return null;
  }
}

const passed = (asked: Asked, how: "paid" | "unpaid"): Promise<null> => asked.serve(how).then(() => null);

/** Returns a key of everything that must be the same for a replay: the payment's content, and the request. */
async function keyOf(asked: Asked, payment: SentPayment, body: Uint8Array<ArrayBuffer>): Promise<string> {
  const headers = COMPARED.map((name) => asked.header(name) ?? null);
  return sha256(JSON.stringify([payment.digest, asked.method, asked.url, headers, await sha256(body)]));
}

/** Waits until no other request with this payment is in progress; false after a timeout. */
async function isFree(busy: ReadonlyMap<string, Promise<unknown>>, id: string): Promise<boolean> {
  const until = performance.now() + WAIT_MS;
  for (let other = busy.get(id); other !== undefined; other = busy.get(id))
    if (!(await endsWithin(other, until - performance.now()))) return false;
  return true;
}

async function endsWithin(work: Promise<unknown>, ms: number): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), Math.max(0, ms));
  });
  try {
    return await Promise.race([work.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}

function isSameResource(resource: string, url: string): boolean {
  if (!URL.canParse(resource, url)) return false;
  const [named, asked] = [new URL(resource, url), new URL(url)];
  return named.pathname === asked.pathname && ["", asked.search].includes(named.search);
}

/** Headers that belong to one connection, or to one moment. */
const NOT_AGAIN = /^(content-length|transfer-encoding|connection|keep-alive|date)$/i;

function again({ status, headers, body }: Answer): Response {
  const answer = new Response(body.length === 0 ? null : body, { status });
  for (const [name, value] of headers) if (!NOT_AGAIN.test(name)) answer.headers.append(name, value);
  answer.headers.set("x-idempotent-replay", "true");
  return answer;
}

/** Returns a 503 for an unknown outcome: the same header will fetch the response. */
const later = (why: string): Response =>
  Response.json(
    { error: `${why} Send the same payment again.` },
    { status: 503, headers: { "retry-after": "5", "cache-control": "no-store" } },
  );
