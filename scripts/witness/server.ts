import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { addCheckpoint, type WitnessAnswer, type WitnessParts } from "./add-checkpoint.ts";

/** Sixteen ML-DSA-44 signatures and 63 hashes take 63,000 bytes. */
const MOST_BYTES = 200_000;
const REQUEST_WITHIN_MS = 10_000;

/** Creates a witness over HTTP. Its root is the prefix for both submission and monitoring. */
export function createWitnessServer(parts: WitnessParts, failed: (error: unknown) => void): Server {
  const origins = new Map([...parts.logs.keys()].map((origin) => [sha256Hex(origin), origin]));
  const answer = async (request: IncomingMessage): Promise<WitnessAnswer | ReturnType<typeof plain>> => {
    const path = request.url ?? "/";
    if (path === "/add-checkpoint") {
      if (request.method !== "POST") return plain(405, "expected POST\n");
      const body = await bodyOf(request);
      return body === null ? plain(413, `expected at most ${MOST_BYTES} bytes\n`) : addCheckpoint(parts, body);
    }
    const [, hash = ""] = /^\/([0-9a-f]{64})\/checkpoint$/.exec(path) ?? [];
    const head = origins.has(hash) ? parts.records.latest(origins.get(hash) ?? "") : null;
    if (head === null) return plain(404, "no checkpoint of this log is cosigned\n");
    return ["GET", "HEAD"].includes(request.method ?? "") ? plain(200, head.checkpoint) : plain(405, "expected GET\n");
  };
  const server = createServer((request, response) => {
    answer(request).then(
      (given) => send(response, given),
      (error: unknown) => {
        failed(error);
        send(response, plain(500, "the witness failed; the checkpoint is not cosigned\n"));
      },
    );
  });
  server.requestTimeout = REQUEST_WITHIN_MS;
  server.headersTimeout = REQUEST_WITHIN_MS;
  return server;
}

const sha256Hex = (origin: string): string => createHash("sha256").update(origin).digest("hex");

const plain = (status: number, body: string) => ({ status, type: "text/plain; charset=utf-8", body });

function send(response: ServerResponse, { status, type, body }: ReturnType<typeof plain>): void {
  // Do not wait for an unread body.
  const end = status === 413 ? { connection: "close" } : {};
  response.writeHead(status, { "content-type": type, "cache-control": "no-store", ...end }).end(body);
}

/** Returns null if the body is too large. Invalid UTF-8 becomes U+FFFD, which the protocol does not allow. */
async function bodyOf(request: IncomingMessage): Promise<string | null> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += chunk.length;
    if (bytes > MOST_BYTES) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
