import {
  type AddressInfo,
  createServer,
  createServer as createTcpServer,
  connect as openSocket,
  type Socket,
} from "node:net";

/** A connection to the database that can lose an acknowledgment. */
export interface DatabaseLink {
  readonly url: string;
  /**
   * The next transaction that stores a certificate is committed, and its connection breaks before its client learns of
   * it.
   */
  readonly loseNextCommit: () => void;
  readonly stop: () => void;
}

export async function startDatabaseLink(url: string): Promise<DatabaseLink> {
  const { hostname, port } = new URL(url);
  const sockets = new Set<Socket>();
  let lose = false;
  const server = createTcpServer((client) => {
    const upstream = openSocket(Number(port || 5432), hostname);
    const cut = () => [client, upstream].map((socket) => socket.destroy());
    for (const socket of [client, upstream]) sockets.add(socket.on("error", cut).on("close", cut));
    let cutting = false;
    /** The name of the statement once this connection has prepared it. */
    let name: string | undefined;
    client.on("data", (sent) => {
      const message = sent.toString("latin1");
      name = /P.{4}(\w+)\0INSERT INTO certificate/s.exec(message)?.[1] ?? name;
      const isStored = message.includes("INSERT INTO certificate") || message.includes(`\0${name}\0`);
      if (lose && isStored) cutting = true;
      upstream.write(sent);
    });
    upstream.on("data", (answered) => {
      if (!cutting || !answered.includes("COMMIT\0")) return client.write(answered);
      lose = false;
      cut();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const own = new URL(url);
  own.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url: own.href,
    loseNextCommit: () => {
      lose = true;
    },
    stop() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

/** A connection to a server that can stop delivering in both directions without closing. */
export interface BlackHole {
  readonly url: string;
  readonly swallow: () => void;
  /** Makes new connections work again. Earlier ones never do, as after a firewall has forgotten them. */
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
