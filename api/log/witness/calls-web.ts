const WITHIN_MS = 5_000;

/** Sixteen ML-DSA-44 cosignatures take 60,000 bytes. */
const MOST_BYTES = 100_000;

export interface WitnessReply {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

export type WitnessCalls = ReturnType<typeof createWitnessCalls>;

/**
 * Calls witnesses. Rejects unless the full response arrives in time. The operator configures the witnesses, so private addresses are
 * allowed, but redirects are not.
 */
export function createWitnessCalls(withinMs = WITHIN_MS) {
  const ask = async (url: string, init: RequestInit): Promise<WitnessReply> => {
    const response = await fetch(url, { ...init, redirect: "error", signal: AbortSignal.timeout(withinMs) });
    return {
      status: response.status,
      type: response.headers.get("content-type") ?? "",
      body: await bodyOf(response),
    };
  };
  const explained = (asking: Promise<WitnessReply>): Promise<WitnessReply> =>
    asking.catch((error: Error) => {
      const { name, message, cause } = error;
      if (name === "TimeoutError") throw new Error(`no response within ${withinMs / 1_000} seconds`);
      throw new Error(cause instanceof Error ? `${message}: ${cause.message}` : message);
    });
  return {
    post: (url: string, body: string) =>
      explained(ask(url, { method: "POST", body, headers: { "content-type": "text/plain" } })),
    get: (url: string) => explained(ask(url, {})),
  };
}

async function bodyOf(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > MOST_BYTES) throw new Error(`its response is longer than ${MOST_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
