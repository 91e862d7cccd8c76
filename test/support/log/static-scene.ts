import { request } from "node:http";
import { connect as connectTcp } from "node:net";
import { text } from "node:stream/consumers";
import { startTestChain } from "../chain/chain.ts";
import { forFile } from "../for-file.ts";
import { startService } from "../service/service.ts";
import { type StoredEntry, storeLog } from "./stored-log.ts";

const FIRST = 300;
const LAST = 256 * 1066;
const SIZE = LAST + 256 + 12;

const entry = (index: number): StoredEntry => ({
  type: "certificate",
  ref: `c${index}`,
  // From empty-looking to long: the length prefix has two bytes.
  entry: Buffer.from(`entry ${index} ${"x".repeat((index * 37) % 700)}`),
});

/** A service with a log of which only the first entries and the last ones are stored, and requests as no client would send them. */
export async function staticScene() {
  const chain = await forFile(startTestChain());
  const service = await forFile(startService({ chain, jobs: false }));
  const log = await storeLog(service.database, "trust.test/log");
  await log.grow(Array.from({ length: FIRST }, (_, index) => entry(index)));
  const before = await (await fetch(`${service.url}/log/checkpoint`)).text();
  log.pad(LAST - FIRST);
  await log.grow(Array.from({ length: SIZE - LAST }, (_, index) => entry(LAST + index)));
  const { hostname, port } = new URL(service.url);
  return {
    service,
    entry,
    size: { first: FIRST, newest: SIZE },
    /** The checkpoint of the first entries. */
    before,
    get: (path: string, headers: Record<string, string> = {}) => fetch(`${service.url}/log/${path}`, { headers }),
    /** As Node sends it: no client in between normalizes the path, or reads an encoding. */
    raw: (path: string, headers: Record<string, string> = {}, method = "GET") =>
      new Promise<{ status: number; headers: NodeJS.Dict<string | string[]>; body: Buffer }>((resolve, reject) => {
        request({ hostname, port, path, headers, method }, (response) => {
          const parts: Buffer[] = [];
          response.on("data", (part: Buffer) => parts.push(part));
          response.on("end", () =>
            resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(parts) }),
          );
        })
          .on("error", reject)
          .end();
      }),
    /** What the service answers to these bytes. */
    async spoken(bytes: string): Promise<string> {
      const socket = connectTcp(Number(port), hostname);
      socket.on("error", () => undefined);
      socket.write(bytes);
      return text(socket);
    },
  };
}
