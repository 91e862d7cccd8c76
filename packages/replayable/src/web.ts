import { joined } from "../../escrow/src/bytes.ts";
import type { Answer } from "./answer-store.ts";
import { MAX_BYTES, type Served } from "./replays.ts";

/** Returns a copy of a request's body; null if it is larger than the limit, or was read before. */
export async function bodyOf(request: Request): Promise<Uint8Array<ArrayBuffer> | null> {
  if (request.bodyUsed) return null;
  const { body } = request.clone();
  if (body === null) return new Uint8Array();
  const reader = body.getReader();
  const chunks: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const { value } = await reader.read();
    if (value === undefined) return joined(chunks);
    chunks.push(value);
    size += value.length;
    if (size <= MAX_BYTES) continue;
    // It ends only when the other copy does.
    void reader.cancel().catch(() => undefined);
    return null;
  }
}

/** The same request without its payment. */
export function unpaid<R extends Request>(request: R): R {
  const headers = new Headers(request.headers);
  headers.delete("payment-signature");
  headers.delete("x-payment");
  const Same = request.constructor as new (input: string | R, init: RequestInit) => R;
  try {
    return new Same(request, { headers });
  } catch {
    // Its body was read before, or it is a proxy, as Next hands one to its routes.
    return new Same(request.url, { method: request.method, headers });
  }
}

/** A response whose own body stays unread. */
export const servedBy = (response: Response): Served => ({
  status: response.status,
  header: (name) => response.headers.get(name),
  async read(): Promise<Answer> {
    const copy = response.clone();
    return {
      status: copy.status,
      headers: [...copy.headers],
      body: new Uint8Array(await copy.arrayBuffer()),
    };
  },
});
