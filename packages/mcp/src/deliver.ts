import { problemOf, type Service, type ServiceAnswer, ServiceError, type ServiceRequest } from "./service.ts";

/** MCP clients wait a minute for a tool. */
export const GIVE_UP_AFTER_MS = 45_000;
const RETRY_MS = 1_000;
/** What the service says of a payment for good. Everything else may come from whatever stands between. */
const FINAL = [200, 400, 402, 409, 422];
/** Settling, overloaded, or a broken connection: the same payment is sent again, which never charges twice. */
const NOT_YET = [429, 500, 502, 503, 504];

/** Why there is no final answer yet. */
export interface Unanswered {
  readonly reason: string;
}

/** Sends a paid request until it gets a final answer, for so long at most. */
export async function deliver(
  service: Service,
  request: ServiceRequest,
  giveUpAfterMs: number,
): Promise<ServiceAnswer | Unanswered> {
  const until = Date.now() + giveUpAfterMs;
  for (;;) {
    const answer = await attempt(service, { ...request, timeoutMs: until - Date.now() });
    if ("text" in answer && FINAL.includes(answer.status)) return answer;
    const reason = "text" in answer ? problemOf(answer) : answer.reason;
    const isLasting = "text" in answer && !NOT_YET.includes(answer.status);
    if (isLasting || Date.now() + RETRY_MS > until) return { reason };
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

async function attempt(service: Service, request: ServiceRequest): Promise<ServiceAnswer | Unanswered> {
  try {
    return await service.send(request);
  } catch (error) {
    if (error instanceof ServiceError) return { reason: error.message };
    throw error;
  }
}
