import { type Service, type ServiceAnswer, ServiceError, type ServiceRequest } from "./service.ts";

/** Longer than the arbiter spends on a delivery. */
const TIMEOUT_MS = 40_000;
const MAX_BYTES = 4 * 1024 * 1024;

/** Returns the service at its origin. It follows no redirects, and reads responses of up to 4 MiB within 40 seconds. */
export const httpService = (baseUrl: string): Service => ({
  baseUrl,
  async send({ path, body, headers, timeoutMs = TIMEOUT_MS }: ServiceRequest): Promise<ServiceAnswer> {
    try {
      const response = await fetch(`${baseUrl}${path}`, {
        ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
        headers: { accept: "application/json", "content-type": "application/json", ...headers },
        redirect: "error",
        signal: AbortSignal.timeout(timeoutMs),
      });
      return { status: response.status, headers: response.headers, text: await readText(response) };
    } catch (cause) {
      const { message, cause: inner } = cause as Error & { cause?: { code?: string; message?: string } };
      throw new ServiceError(`${baseUrl}${path} could not be read: ${inner?.code ?? inner?.message ?? message}.`, {
        cause,
      });
    }
  },
});

async function readText({ body }: Response): Promise<string> {
  const decoder = new TextDecoder();
  let [text, bytes] = ["", 0];
  for await (const chunk of body ?? []) {
    bytes += chunk.length;
    if (bytes > MAX_BYTES) throw new Error(`more than ${MAX_BYTES} bytes`);
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}
