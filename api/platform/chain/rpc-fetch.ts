import { Agent, request } from "undici";

/** The most that a node may answer, in bytes: viem's own limit. */
const MOST_BYTES = 10 * 1024 * 1024;

/** Connections to nodes stay open between calls. */
const nodes = new Agent({ maxResponseSize: MOST_BYTES });

/** As `fetch` says it; some providers refuse who says nothing. */
const CALLER = { accept: "*/*", "user-agent": "node" };

/**
 * Sends a JSON-RPC call in less than half of the processor time that `fetch` takes. The call's time limit covers the whole
 * answer, which has been read when the response comes back. Redirects are not followed: payers' signatures go to the
 * configured node alone. Nothing is compressed. Of a failure only the code is told, because a node's address may be secret.
 */
export async function rpcFetch(
  url: string | URL | Request,
  { headers, body, signal }: RequestInit = {},
): Promise<Response> {
  const own = { ...CALLER, ...Object.fromEntries(new Headers(headers)) };
  const sent = { method: "POST", headers: own, body: String(body), signal: signal ?? null, dispatcher: nodes } as const;
  const { answer, text } = await read(request(String(url), sent)).catch((error: NodeJS.ErrnoException) => {
    throw error.name === "AbortError" ? error : new Error(`the node cannot be read: ${error.code ?? error.name}`);
  });
  const { statusCode: status, statusText } = answer;
  const named = Object.entries(answer.headers).map(([name, value]): [string, string] => [name, String(value)]);
  return new Response(text, { status, statusText, headers: named });
}

async function read(answering: ReturnType<typeof request>) {
  const answer = await answering;
  return { answer, text: await answer.body.text() };
}
