import type { IncomingMessage, ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";
import { serveHttp } from "../http-server.ts";

/** What happens to a delivery on its way to the service: it passes, the line is dead, or someone else answers. */
export type Weather =
  | "fair"
  | "down"
  | { readonly delayMs: number }
  | { readonly status: number; readonly body: unknown; readonly retryAfter?: string };

export interface ArbiterFront {
  readonly url: string;
  /** From now on, for deliveries only. */
  readonly become: (weather: Weather) => void;
  /** The bodies of all deliveries that arrived, whatever happened to them. */
  readonly forwarded: readonly Record<string, unknown>[];
  readonly stop: () => void;
}

export async function startArbiterFront(target: string): Promise<ArbiterFront> {
  let weather: Weather = "fair";
  const forwarded: Record<string, unknown>[] = [];
  const answer = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const body = await buffer(incoming);
    const isDelivery = incoming.method === "POST";
    if (isDelivery) forwarded.push(JSON.parse(body.toString()));
    const now = isDelivery ? weather : "fair";
    if (now === "down") return void outgoing.destroy();
    if (typeof now === "object" && "status" in now) {
      const later = now.retryAfter === undefined ? {} : { "retry-after": now.retryAfter };
      const headers = { "content-type": "application/json", ...later };
      return void outgoing.writeHead(now.status, headers).end(JSON.stringify(now.body));
    }
    if (typeof now === "object") await new Promise((resolve) => setTimeout(resolve, now.delayMs));
    const { method = "GET", url = "/" } = incoming;
    const headers = { "content-type": "application/json", accept: incoming.headers.accept ?? "*/*" };
    const passed = await fetch(`${target}${url}`, { method, headers, body: isDelivery ? body : null });
    outgoing.writeHead(passed.status, { "content-type": "application/json" }).end(await passed.text());
  };
  // A delivery still being forwarded when the service stops has no one to answer.
  const server = await serveHttp((incoming, outgoing) => {
    answer(incoming, outgoing).catch(() => outgoing.destroy());
  });
  return {
    ...server,
    become: (next) => {
      weather = next;
    },
    forwarded,
  };
}
