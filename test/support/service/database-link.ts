import { type AddressInfo, createServer as createTcpServer, connect as openSocket, type Socket } from "node:net";

/** A path to the database that can lose an acknowledgement. */
export interface DatabaseLink {
  readonly url: string;
  /** The next transaction that stores a certificate is committed, and the connection breaks before anyone learns of it. */
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
    /** What this connection calls the statement once it has prepared it. */
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
