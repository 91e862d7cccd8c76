import { InputError, quote } from "./refusal.ts";

const TIMEOUT_MS = 10_000;
const MAX_BYTES = 1_048_576;
const LOOPBACK = ["localhost", "127.0.0.1", "[::1]"];

/** Overrides for the limits: the size of the decompressed response, in bytes, and the total time. */
export interface FetchLimits {
  readonly maxBytes?: number;
  readonly timeoutMs?: number;
  readonly accept?: string;
}

/** The server returned a status other than 200. */
export class StatusError extends InputError {
  readonly status: number;
  /** The `Retry-After` header in seconds; 0 without one. */
  readonly retryAfterSeconds: number;

  constructor(url: string, { status, headers }: Response) {
    super(`${quote(url)} returned status ${status}`);
    this.status = status;
    const wait = headers.get("retry-after") ?? "";
    this.retryAfterSeconds = /^\d{1,6}$/.test(wait) ? Number(wait) : 0;
  }
}

/**
 * Fetches the text at an https address (http only on this machine): within 10 seconds, at most 1 MiB, without
 * redirects.
 * @throws InputError; a `StatusError` for a status other than 200
 */
export async function fetchText(
  url: string,
  { maxBytes = MAX_BYTES, timeoutMs = TIMEOUT_MS, accept = "application/json" }: FetchLimits = {},
): Promise<Uint8Array<ArrayBuffer>> {
  if (!URL.canParse(url)) throw new InputError(`${quote(url)} is not a URL`);
  const { protocol, hostname } = new URL(url);
  if (protocol !== "https:" && !(protocol === "http:" && LOOPBACK.includes(hostname)))
    throw new InputError(`${quote(url)} was not fetched: expected https (http only on this machine)`);
  const answer = await attempt(url, () =>
    fetch(url, { redirect: "error", signal: AbortSignal.timeout(timeoutMs), headers: { accept } }),
  );
  if (!answer.ok) {
    await answer.body?.cancel();
    throw new StatusError(url, answer);
  }
  return attempt(url, () => readAll(answer, maxBytes));
}

async function readAll({ body }: Response, maxBytes: number): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for (const reader = body?.getReader(); reader !== undefined; ) {
    const { value, done } = await reader.read();
    if (done) break;
    size += value.length;
    if (size > maxBytes) {
      await reader.cancel();
      throw new Error(`more than ${maxBytes === MAX_BYTES ? "1 MiB" : `${maxBytes} bytes`}`);
    }
    chunks.push(value);
  }
  return new Uint8Array(await new Blob(chunks).arrayBuffer());
}

async function attempt<T>(url: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    const { message, cause: inner } = cause as Error & { cause?: { code?: string } };
    throw new InputError(`${quote(url)} cannot be read: ${inner?.code ?? message}`, { cause });
  }
}
