import { type AddressInfo, createServer, connect as openSocket, type Socket } from "node:net";

/** A path to a server that can stop delivering anything, in both directions, without closing a connection. */
export interface BlackHole {
  readonly url: string;
  readonly swallow: () => void;
  /** New connections work again. Those from before never do: a firewall has forgotten them. */
  readonly restore: () => void;
  readonly stop: () => void;
}

export async function startBlackHole(url: string): Promise<BlackHole> {
  const { hostname, port } = new URL(url);
  const sockets = new Set<Socket>();
  let era = 0;
  let open = true;
  const server = createServer((client) => {
    const began = era;
    const delivers = () => open && began === era;
    sockets.add(client.on("error", () => undefined));
    if (!delivers()) return;
    const upstream = openSocket(Number(port || 5432), hostname).on("error", () => undefined);
    sockets.add(upstream);
    const forward = (from: Socket, to: Socket) => {
      from.on("data", (bytes) => delivers() && to.write(bytes));
      from.on("close", () => delivers() && to.destroy());
    };
    forward(client, upstream);
    forward(upstream, client);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const own = new URL(url);
  own.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url: own.href,
    swallow() {
      open = false;
      era++;
    },
    restore() {
      open = true;
    },
    stop() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}
