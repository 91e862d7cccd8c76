import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";

export interface LocalServer {
  /** Without a slash at its end. */
  readonly url: string;
  readonly stop: () => void;
}

/** An HTTP server of the test's own, on a free port of this machine. It drops its connections when it stops. */
export async function serveHttp(listener: RequestListener, host = "127.0.0.1"): Promise<LocalServer> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  return {
    url: `http://${host}:${(server.address() as AddressInfo).port}`,
    stop() {
      server.closeAllConnections();
      server.close();
    },
  };
}
