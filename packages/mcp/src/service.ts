import { type Expectation, parseKeySet } from "../../verifier/src/index.ts";

/** A request to the service: a POST if it has a body, else a GET. */
export interface ServiceRequest {
  readonly path: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** The timeout for the whole response, if not the default. */
  readonly timeoutMs?: number;
}

export interface ServiceAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** The trust service: over the network, or this program itself. */
export interface Service {
  readonly baseUrl: string;
  /** @throws ServiceError if there is no response */
  readonly send: (request: ServiceRequest) => Promise<ServiceAnswer>;
}

/** Thrown if the service did not respond, or not as expected. The message is for the agent. */
export class ServiceError extends Error {}

/** Returns a free document's text and its content. @throws ServiceError with the service's reason for refusing */
export async function read(service: Service, path: string): Promise<{ text: string; document: unknown }> {
  const answer = await service.send({ path });
  if (answer.status !== 200) throw new ServiceError(`GET ${path}: ${problemOf(answer)}`);
  return { text: answer.text, document: parseJson(answer, path) };
}

/** Returns the expectation that the service signed, with one of its published keys. */
export async function signedBy(service: Service): Promise<Expectation> {
  return { keys: await parseKeySet((await read(service, "/.well-known/jwks.json")).text), issuer: service.baseUrl };
}

export function parseJson({ text }: Pick<ServiceAnswer, "text">, path: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new ServiceError(`${path} did not return JSON.`, { cause });
  }
}

/** Returns the service's reason for refusing, from its problem details (RFC 9457), with each field named. */
export function problemOf({ status, text }: ServiceAnswer): string {
  const { detail, errors } = tryObject(text);
  if (typeof detail !== "string") return `the service answered ${status}.`;
  const fields = Array.isArray(errors) ? errors.map(({ path, message }) => `${path}: ${message}`) : [];
  return [`the service answered ${status}: ${detail}`, ...fields].join(" · ").slice(0, 2_000);
}

function tryObject(text: string): Readonly<Record<string, unknown>> {
  try {
    return Object(JSON.parse(text));
  } catch {
    return {};
  }
}

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
