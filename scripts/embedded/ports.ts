import { randomInt } from "node:crypto";
import { createServer } from "node:net";

const LOOPBACK = "127.0.0.1";

/** Below those that systems give to outgoing connections (Linux 32,768, others 49,152), one of which could take it. */
const FIRST = 10_000;
const COUNT = 22_000;
/** `fetch` calls no such port: it is on its list of bad ones. */
const REFUSED_BY_FETCH = 10_080;
/** A program listens long before that, or has failed. */
const CLAIMED_MS = 60_000;

/**
 * A TCP port on 127.0.0.1 that is free, and that no other program of this repository is given in the next minute: several
 * test runs may share a machine.
 */
export async function freePort(pick: () => number = () => FIRST + randomInt(COUNT)): Promise<number> {
  for (;;) {
    const port = pick();
    if (port !== REFUSED_BY_FETCH && (await isPortFree(port, LOOPBACK)) && (await claim(port))) return port;
  }
}

/** By an abstract socket, which ends with its process and leaves nothing behind. Other systems than Linux have none. */
const claim = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    if (process.platform !== "linux") return resolve(true);
    const server = createServer().unref();
    server.once("error", () => resolve(false));
    server.listen(`\0trust-port-${port}`, () => {
      setTimeout(() => server.close(), CLAIMED_MS).unref();
      resolve(true);
    });
  });

/** Whether a server could listen there now. Without a host: on every address, as the API does. */
export const isPortFree = (port: number, host?: string): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen({ port, ...(host === undefined ? {} : { host }) }, () => server.close(() => resolve(true)));
  });
