import { problemOf, type Service, type ServiceAnswer, ServiceError, type ServiceRequest } from "./service.ts";

/** MCP clients wait a minute for a tool. */
export const GIVE_UP_AFTER_MS = 45_000;
const RETRY_MS = 1_000;
/** The service's final responses to a payment. Any other may come from an intermediary. */
const FINAL = [200, 400, 402, 409, 422];
/** Settling, overloaded, or a broken connection: the same payment is sent again, which never charges twice. */
const NOT_YET = [429, 500, 502, 503, 504];

/** The reason why there is no final response yet. */
export interface Unanswered {
  readonly reason: string;
}

/**
 * Sends a paid request until it gets a final response, within a time limit. Between attempts it waits for as long as
 * the service requests; if that is too long, it returns, and the agent does the waiting.
 */
export async function deliver(
  service: Service,
  request: ServiceRequest,
  giveUpAfterMs: number,
): Promise<ServiceAnswer | Unanswered> {
  const until = performance.now() + giveUpAfterMs;
  for (;;) {
    const answer = await attempt(service, { ...request, timeoutMs: Math.ceil(until - performance.now()) });
    if ("text" in answer && FINAL.includes(answer.status)) return answer;
    const reason = "text" in answer ? problemOf(answer) : answer.reason;
    const isLasting = "text" in answer && !NOT_YET.includes(answer.status);
    const asked = "text" in answer ? retryAfterMs(answer) : 0;
    const pause = Math.max(RETRY_MS, asked);
    if (isLasting || performance.now() + pause > until)
      return { reason: asked > RETRY_MS ? withWait(reason, asked) : reason };
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

/** Returns the wait that the header Retry-After requests (RFC 9110, section 10.2.3); 0 if it cannot be read. */
function retryAfterMs({ headers }: ServiceAnswer): number {
  const text = headers.get("retry-after") ?? "";
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1_000;
  const at = /^[A-Z][a-z]{2},/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? 0 : Math.max(0, at - Date.now());
}

const withWait = (reason: string, ms: number): string =>
  `${reason} It requests a wait of ${Math.ceil(ms / 1_000)} seconds before that.`;

async function attempt(service: Service, request: ServiceRequest): Promise<ServiceAnswer | Unanswered> {
  try {
    return await service.send(request);
  } catch (error) {
    if (error instanceof ServiceError) return { reason: error.message };
    throw error;
  }
}
