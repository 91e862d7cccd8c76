import { Agent, request } from "undici";

/** The most that a node may answer, in bytes: viem's own limit. */
const MOST_BYTES = 10 * 1024 * 1024;

/** Connections to nodes stay open between calls. */
const nodes = new Agent({ maxResponseSize: MOST_BYTES });

/** As `fetch` says it; some providers refuse who says nothing. */
const CALLER = { accept: "*/*", "user-agent": "node" };

/**
 * Sends a JSON-RPC call in half of the processor time that `fetch` takes, and gives viem what it reads of a response.
 * The call's time limit covers the whole answer. Redirects are not followed: payers' signatures go to the configured node
 * alone. Nothing is compressed. Of a failure only the code is told, because a node's address may be secret.
 */
export async function rpcFetch(url: string | URL | Request, { headers, body, signal }: RequestInit = {}) {
  const own = { ...CALLER, ...(headers as Record<string, string>) };
  const sent = { method: "POST", headers: own, body: String(body), signal: signal ?? null, dispatcher: nodes } as const;
  const { answer, text } = await read(request(String(url), sent)).catch((error: NodeJS.ErrnoException) => {
    throw error.name === "AbortError" ? error : new Error(`the node cannot be read: ${error.code ?? error.name}`);
  });
  const { statusCode: status, statusText } = answer;
  const named = (name: string): string | null => [answer.headers[name.toLowerCase()] ?? null].flat()[0] ?? null;
  const response = { ok: status >= 200 && status < 300, status, statusText, body: null };
  return { ...response, headers: { get: named }, text: async () => text } as unknown as Response;
}

async function read(answering: ReturnType<typeof request>) {
  const answer = await answering;
  return { answer, text: await answer.body.text() };
}
