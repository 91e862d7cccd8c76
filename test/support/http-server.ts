import { createServer, type RequestListener, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface LocalServer {
  /** The origin, without a trailing slash. */
  readonly url: string;
  readonly stop: () => void;
}

/** An HTTP server for the test on a free local port. It drops its connections when it stops. */
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

/** Responds until the client disconnects. */
export function respondEndlessly(response: ServerResponse): void {
  const more = () => {
    while (response.writable && !response.destroyed && response.write("x".repeat(65_536)));
  };
  response.writeHead(200).on("drain", more);
  more();
}
