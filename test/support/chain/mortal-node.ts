import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

/** A JSON-RPC node of a chain that can be killed, and that notes what it was asked. */
export interface MortalNode {
  readonly url: string;
  /** The methods of the calls that have arrived, oldest first. */
  readonly asked: readonly string[];
  /** From now on it is a node of this chain. */
  readonly follow: (rpcUrl: string) => void;
  /** Breaks its connections, those with a call under way too, and refuses new ones. */
  readonly kill: () => void;
  readonly revive: () => Promise<void>;
  readonly stop: () => void;
}

export async function startMortalNode(rpcUrl: string): Promise<MortalNode> {
  const asked: string[] = [];
  let chain = rpcUrl;
  const server = createServer(async (incoming, outgoing) => {
    try {
      const body = await text(incoming);
      asked.push(...[JSON.parse(body)].flat().map(({ method }: { method: string }) => method));
      const headers = { "content-type": "application/json" };
      const response = await fetch(chain, { method: "POST", headers, body });
      outgoing.writeHead(response.status, headers).end(await response.text());
    } catch {
      outgoing.destroy();
    }
  });
  const listen = (port: number) => new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  await listen(0);
  const { port } = server.address() as AddressInfo;
  const kill = () => {
    server.close();
    server.closeAllConnections();
  };
  return {
    url: `http://127.0.0.1:${port}`,
    asked,
    follow: (next) => {
      chain = next;
    },
    kill,
    revive: () => listen(port),
    stop: kill,
  };
}
