import { z } from "zod";

/** How long an older head is held back, counted from the last answer that was not older. Base makes five blocks in it. */
export const OLDER_MS = 10_000;
/** How long the next head is held back while Ponder reads the one before. */
export const READING_MS = 3_000;

const question = z.object({
  method: z.literal("eth_getBlockByNumber"),
  params: z.tuple([z.literal("latest"), z.literal(true)]),
});
const answer = z.object({ result: z.object({ number: z.string().regex(/^0x[0-9a-f]+$/i) }) });

interface Shown {
  readonly number: number;
  readonly text: string;
  /** When it was first shown. */
  readonly since: number;
}

/**
 * Ponder's `fetch`, with polls for the newest block that never go back. Ponder takes an older head for a reorganization:
 * it removes the newer blocks' rows, and does not ask for them again before the next block. But an older head is most
 * often a node that lags, or an answer that was overtaken. Nor is a new head shown while Ponder still reads the one
 * before: if the reading of an older block ends last, Ponder goes back to that one.
 * @param ask what the requests go to
 * @param url the node's; other requests pass
 */
export function steadyHeads(ask: typeof fetch, url: string): typeof fetch {
  const node = new URL(url).href;
  let shown: Shown | null = null;
  let confirmed = 0;
  let reading = 0;

  const show = (seen: Shown): Shown => {
    const isOlder = shown !== null && seen.number < shown.number;
    if (!isOlder) confirmed = seen.since;
    if (shown === null || seen.text === shown.text) return shown ?? seen;
    const isHeldBack = isOlder
      ? seen.since - confirmed < OLDER_MS
      : reading > 0 && seen.since - shown.since < READING_MS;
    return isHeldBack ? shown : seen;
  };
  const poll = async (request: Request) => {
    const response = await ask(request);
    const text = await response.clone().text();
    const number = headIn(text);
    if (number === null) return response;
    shown = show({ number, text, since: performance.now() });
    return Response.json(JSON.parse(shown.text));
  };
  return async (request, options) => {
    if (!(request instanceof Request) || request.url !== node) return ask(request, options);
    if (await isPoll(request)) return poll(request);
    reading += 1;
    return ask(request).finally(() => {
      reading -= 1;
    });
  };
}

const isPoll = async (request: Request): Promise<boolean> =>
  question.safeParse(parse(await request.clone().text())).success;

/** The head in a node's answer; null if there is none. */
function headIn(text: string): number | null {
  const { data } = answer.safeParse(parse(text));
  return data === undefined ? null : Number(data.result.number);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
