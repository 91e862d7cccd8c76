// The cost of reads. Over HTTP, compares `/verify` and `/badge` with a bare Hono route that reads one row by its primary key, on
// the same machine and database, in turns. Without HTTP and payment, compares `/verify` and the score on an index with the same
// reads on an index with a tenth of its transfers.
//
//   npm run bench:reads -- [http] [score] [transfers of the larger index, default 1000000]
import { randomBytes } from "node:crypto";
import autocannon from "autocannon";
import { freePort } from "../../scripts/embedded/ports.ts";
import { processorMs, type Service, startProgram, stopProgram, withService } from "../programs.ts";
import { type Figure, median, medianRatio, report } from "../table.ts";
import { measureScore } from "./score.ts";

const ROUNDS = 5;
const SECONDS = 4;
const CONNECTIONS = 16;

interface Round {
  readonly perSecond: number;
  readonly p99: number;
  /** Processor milliseconds per request. */
  readonly server: number;
  readonly postgres: number;
}

/**
 * Compares `/verify` and `/badge` over HTTP with a bare Hono route that reads one row by its primary key, in turns. Activity
 * is cached for 200 ms, so `/verify` is also measured with a different wallet in each request.
 */
async function measureHttp({ lines, baseUrl, databaseUrl, pid }: Service): Promise<readonly Figure[]> {
  const output = lines.join("\n");
  const [id, wallet] = [/\/cert\/([0-9a-f]{16})/.exec(output)?.[1], /wallet=(0x[0-9a-fA-F]{40})/.exec(output)?.[1]];
  const port = String(await freePort());
  const peer = await startProgram("bench/reads/peer.ts", { DATABASE_URL: databaseUrl, PORT: port });
  const used = { peer: () => processorMs(peer.pid), ours: () => processorMs(pid, /api\/main\.ts/) };
  const other = (request: object) => ({ ...request, path: `/verify?wallet=0x${randomBytes(20).toString("hex")}` });
  const measure = async (name: keyof typeof targets, duration: number): Promise<Round> => {
    const url = targets[name];
    const server = url.includes(`:${port}/`) ? used.peer : used.ours;
    const before = { server: server(), postgres: processorMs(pid, /postgres/) };
    const { requests, latency, non2xx, errors } = await autocannon({
      ...{ url, connections: CONNECTIONS, duration },
      ...(name === "/verify, any wallet" ? { requests: [{ setupRequest: other }] } : {}),
    });
    if (non2xx + errors > 0) throw new Error(`${url}: ${non2xx} wrong responses, ${errors} errors`);
    const each = (after: number, earlier: number) => (after - earlier) / requests.total;
    return {
      ...{ perSecond: requests.average, p99: latency.p99, server: each(server(), before.server) },
      postgres: each(processorMs(pid, /postgres/), before.postgres),
    };
  };
  const targets = {
    peer: `http://127.0.0.1:${port}/row/${id}`,
    "/verify": `${baseUrl}/verify?wallet=${wallet}`,
    "/verify, any wallet": `${baseUrl}/verify`,
    "/badge": `${baseUrl}/badge/${id}.svg`,
  };
  const names = Object.keys(targets) as (keyof typeof targets)[];
  const rounds: Record<keyof typeof targets, Round[]> = {
    ...{ peer: [], "/verify": [], "/verify, any wallet": [], "/badge": [] },
  };
  try {
    for (const name of names) await measure(name, 2);
    for (let round = 0; round < ROUNDS; round++)
      for (const name of names) rounds[name].push(await measure(name, SECONDS));
  } finally {
    await stopProgram(peer);
  }
  return (["/verify", "/verify, any wallet", "/badge"] as const).flatMap((name) => {
    const figure = (what: string, pick: (round: Round) => number): Figure => ({
      ...{ name: `${name}, ${what}`, ours: median(rounds[name].map(pick)), peer: median(rounds.peer.map(pick)) },
      ratio: medianRatio(rounds[name], rounds.peer, pick),
    });
    return [
      { ...figure("requests/s", (one) => one.perSecond), ...(name === "/verify, any wallet" ? {} : { atLeast: 0.6 }) },
      figure("p99, ms", (one) => one.p99),
      figure("processor ms in the server", (one) => one.server),
      figure("processor ms in PostgreSQL", (one) => one.postgres),
    ];
  });
}

const words = process.argv.slice(2);
const [transfers = 1_000_000] = words.map(Number).filter((number) => !Number.isNaN(number));
const parts: Readonly<Record<string, () => Promise<readonly Figure[]>>> = {
  http: () => withService(measureHttp),
  score: () => measureScore(transfers / 10, transfers),
};
const named = words.filter((word) => word in parts);
let isReached = true;
for (const name of named.length === 0 ? Object.keys(parts) : named)
  isReached = report(`reads, ${name}`, (await parts[name]?.()) ?? []) && isReached;
process.exitCode = isReached ? 0 : 1;
