import { randomInt } from "node:crypto";
import { createServer } from "node:net";

const LOOPBACK = "127.0.0.1";

/** Below the range for outgoing connections (Linux from 32,768, others from 49,152), which could take a port. */
const FIRST = 10_000;
const COUNT = 22_000;
/** `fetch` blocks this port. */
const REFUSED_BY_FETCH = 10_080;
/** By then, a program listens or has failed. */
const CLAIMED_MS = 60_000;

/**
 * Returns a free TCP port on 127.0.0.1 that no other program of this repository gets in the next minute, because several test
 * runs may share a machine.
 */
export async function freePort(pick: () => number = () => FIRST + randomInt(COUNT)): Promise<number> {
  for (;;) {
    const port = pick();
    if (port !== REFUSED_BY_FETCH && (await isPortFree(port, LOOPBACK)) && (await claim(port))) return port;
  }
}

/** Claims a port with an abstract socket, which ends with its process. Only Linux has these. */
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

/** Returns whether a server can listen on the port. Without a host, it checks every address, as the API uses. */
export const isPortFree = (port: number, host?: string): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen({ port, ...(host === undefined ? {} : { host }) }, () => server.close(() => resolve(true)));
  });
