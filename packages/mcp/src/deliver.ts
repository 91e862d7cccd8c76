import { problemOf, type Service, type ServiceAnswer, ServiceError, type ServiceRequest } from "./service.ts";

/** MCP clients wait a minute for a tool. */
const GIVE_UP_AFTER_MS = 45_000;
const RETRY_MS = 1_000;
/** Settling, overloaded, or a broken connection: the same payment is sent again, which never charges twice. */
const NOT_YET = [429, 500, 502, 503, 504];

/**
 * Sends a paid request until it gets a final answer, for 45 seconds at most.
 * @throws ServiceError if the outcome is still unknown then
 */
export async function deliver(
  service: Service,
  request: ServiceRequest,
  giveUpAfterMs = GIVE_UP_AFTER_MS,
): Promise<ServiceAnswer> {
  const until = Date.now() + giveUpAfterMs;
  for (;;) {
    const answer = await attempt(service, { ...request, timeoutMs: until - Date.now() });
    if (typeof answer !== "string") return answer;
    if (Date.now() + RETRY_MS > until)
      throw new ServiceError(
        `${request.path}: a payment was signed and sent, but its outcome is unknown: ${answer} It counts against the session's budget. Check the payer's wallet before buying again.`,
      );
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

/** The answer, or why there is none yet. */
async function attempt(service: Service, request: ServiceRequest): Promise<ServiceAnswer | string> {
  try {
    const answer = await service.send(request);
    return NOT_YET.includes(answer.status) ? problemOf(answer) : answer;
  } catch (error) {
    if (error instanceof ServiceError) return error.message;
    throw error;
  }
}
