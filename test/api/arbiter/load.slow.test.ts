import { execFile } from "node:child_process";
import type { ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import type { LocalAccount } from "viem";
import { expect, test, vi } from "vitest";
import { forFile } from "../../support/for-file.ts";
import { type LocalServer, serveHttp } from "../../support/http-server.ts";
import { settlements } from "../../support/payments/on-chain.ts";
import { type Answer, post, send, v2 } from "../../support/payments/requests.ts";
import { newPayer, type Signed, signPayment, unixNow } from "../../support/payments/signing.ts";
import { startApiStage } from "../../support/service/api-process.ts";
import { waitUntil } from "../../support/wait-until.ts";

vi.setConfig({ testTimeout: 120_000 });

const CLAIMS = 200;
/** Enough payers that none exceeds its limit of claims in flight. */
const PAYERS = 20;
const FETCHES = 64;
const BODY_BYTES = 65_536;
/**
 * A claim may take 1 MiB: its request, parsed and stored, its response, and two sockets, each a small multiple of the
 * 64 KiB body. A fetch may take another 512 KiB for its socket, stream, and parser buffers. The heap may grow by 64 MiB
 * before it collects.
 */
const MOST_GROWN_MIB = CLAIMS + FETCHES / 2 + 64;
/** Generous enough for any machine; only a read that waits for the 200 claims exceeds it. */
const READ_LIMIT_MS = { p50: 1_000, p99: 8_000 };
/** The connection pool of one process. */
const CONNECTIONS = 16;

/** A server of deliverables that hangs at first. After `recover`, it answers slowly. */
interface Shop extends LocalServer {
  /** The number of requests without a response. */
  readonly hanging: () => number;
  /** Ends the hang: every pending and later request gets a response that takes one second. */
  readonly recover: () => void;
}

async function startShop(): Promise<Shop> {
  const hanging = new Set<ServerResponse>();
  let recovered = false;
  const server = await serveHttp((_, response) => {
    if (recovered) return void deliver(response);
    hanging.add(response);
    response.on("close", () => hanging.delete(response));
  });
  return {
    ...server,
    hanging: () => hanging.size,
    recover() {
      recovered = true;
      for (const response of hanging) void deliver(response);
    },
  };
}

const PIECE = Buffer.alloc(BODY_BYTES / 8, "a");

/** Sends the body in pieces, over one second. */
async function deliver(response: ServerResponse): Promise<void> {
  for (let sent = 0; sent < BODY_BYTES && !response.destroyed; sent += PIECE.length) {
    response.write(PIECE);
    await sleep(125);
  }
  response.end();
}

const [stage, shop] = await Promise.all([forFile(startApiStage()), forFile(startShop())]);
const api = await stage.start({ url: stage.chain.rpcUrl }, { ARBITER_ALLOWED_ORIGINS: shop.url });

const pay = (signed: Signed): Promise<Answer> => {
  const { nonce } = signed.authorization;
  const conditions = { url: `${shop.url}/${nonce}`, min_bytes: BODY_BYTES };
  const body = JSON.stringify({ category: "http-delivery", conditions, deal_ref: nonce });
  return post(`${api.url}/arbiter/verify`, v2(signed), body);
};

/**
 * Sends the same header until `isAnswer` accepts the response. A settled claim that got no slot is a separate response.
 */
async function payUntil(signed: Signed, isAnswer: (answer: Answer) => boolean): Promise<Answer> {
  for (;;) {
    const answer = await pay(signed);
    if (isAnswer(answer)) return answer;
    await sleep(500);
  }
}

const isPending = ({ status }: Answer): boolean => status === 503;
const isTurnedAway = (answer: Answer): boolean =>
  isPending(answer) && answer.headers.get("retry-after") === "10" && answer.text.includes("The payment has settled");

/** Signs authorizations of a few payers in advance. */
async function sign(count: number): Promise<Signed[]> {
  const payers: LocalAccount[] = [];
  while (payers.length < PAYERS) payers.push(await newPayer(stage.chain, 100_000_000n));
  const validBefore = unixNow() + 3_600n;
  return Promise.all(
    payers.flatMap((payer) => Array.from({ length: count / PAYERS }, () => signPayment(payer, { validBefore }))),
  );
}

/** Pays for all claims and settles them in one block, or in a few if small batches on a slow machine fill the queue. */
async function settleTogether(claims: readonly Signed[]): Promise<readonly Promise<Answer>[]> {
  const { client } = stage.chain;
  const members = async () => (await stage.owner.query("SELECT FROM relay_member")).rowCount ?? 0;
  const before = await members();
  await client.setAutomine(false);
  const answers = claims.map((claim) => payUntil(claim, (answer) => !isPending(answer) || isTurnedAway(answer)));
  const mining = setInterval(() => stage.chain.mine(), 3_000);
  const areSent = await waitUntil(async () => (await members()) === before + claims.length, 60_000, 100);
  clearInterval(mining);
  expect(areSent).toBe(true);
  await client.setAutomine(true);
  await stage.chain.mine();
  return answers;
}

/** Reads the paths in turn until it is stopped. Returns the duration of each read in milliseconds, ascending. */
function readInTurn(paths: readonly string[]): () => Promise<readonly number[]> {
  const times: number[] = [];
  let isStopped = false;
  const reading = (async () => {
    for (let turn = 0; !isStopped; turn++) {
      const started = performance.now();
      const { status, text } = await send(`${api.url}${paths[turn % paths.length]}`);
      times.push(performance.now() - started);
      expect({ status, text }).toMatchObject({ status: 200 });
      await sleep(20);
    }
  })();
  return async () => {
    isStopped = true;
    await reading;
    return times.toSorted((a, b) => a - b);
  };
}

const rssMiB = async (): Promise<number> =>
  Number((await promisify(execFile)("ps", ["-o", "rss=", "-p", String(api.pid)])).stdout) / 1024;

/** Watches the process's memory. The returned function reports its growth in MiB. */
async function watchMemory(): Promise<() => number> {
  const before = await rssMiB();
  let most = before;
  const timer = setInterval(async () => {
    most = Math.max(most, await rssMiB().catch(() => 0));
  }, 500);
  return () => {
    clearInterval(timer);
    return most - before;
  };
}

const OPEN_CONNECTIONS = `
  SELECT count(*)::int AS open, (count(*) FILTER (WHERE state LIKE 'idle in transaction%'))::int AS held
  FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`;

async function expectDecidedOnce(claims: readonly Signed[], answers: readonly Answer[]): Promise<void> {
  const nonces = claims.map(({ authorization }) => authorization.nonce).sort();
  expect(answers.filter(({ status }) => status !== 200).map(({ text }) => text)).toEqual([]);
  const { rows } = await stage.owner.query<{ deal: string; document: string }>(
    "SELECT request ->> 'dealRef' AS deal, document FROM verdict",
  );
  expect(rows.map(({ deal }) => deal).sort()).toEqual(nonces);
  const recorded = rows.map(({ document }) => JSON.parse(document));
  expect(new Map(recorded.map((verdict) => [verdict.id, verdict]))).toEqual(
    new Map(answers.map(({ body }) => [body.id, body])),
  );
  const payers = new Set(claims.map(({ authorization }) => authorization.from));
  const charges = await Promise.all([...payers].map((payer) => settlements(stage.chain, payer)));
  expect(
    charges
      .flat()
      .map(({ nonce }) => nonce)
      .sort(),
  ).toEqual(nonces);
  // The server really hung: at least one full wave of fetches hit its deadline.
  const timedOut = rows.filter(({ document }) => document.includes('"failure":"timeout"'));
  expect(timedOut.length).toBeGreaterThanOrEqual(FETCHES);
}

/** Measures the service while the server hangs, until the first claim without a slot gets a Retry-After. */
async function whileItHangs(answers: readonly Promise<Answer>[], reads: readonly string[]) {
  expect(await waitUntil(() => shop.hanging() === FETCHES, 20_000)).toBe(true);
  const stopReading = readInTurn(reads);
  await Promise.any(
    answers.map(async (answer) => {
      if (!isTurnedAway(await answer)) throw new Error("answered while the server hangs");
    }),
  );
  expect(shop.hanging()).toBeLessThanOrEqual(FETCHES);
  const { rows } = await stage.owner.query<{ open: number; held: number }>(OPEN_CONNECTIONS);
  const times = await stopReading();
  const at = (share: number) => times[Math.floor(times.length * share)] ?? Number.NaN;
  return { ...rows[0], p50: at(0.5), p99: at(0.99) };
}

test(`${CLAIMS} paid claims against a server that hangs: memory, connections, and free reads stay within limits, claims without a slot get a Retry-After, and each claim is decided once`, async () => {
  const claims = await sign(CLAIMS);
  const reads = ["/health", `/verify?wallet=${claims[0]?.authorization.from}`, "/arbiter", "/arbiter/log", "/board"];
  for (const path of reads) await send(`${api.url}${path}`);
  const growth = await watchMemory();
  const answers = await settleTogether(claims);
  const { open, held, p50, p99 } = await whileItHangs(answers, reads);
  shop.recover();
  const finished = await Promise.all(
    answers.map(async (answer, index) => {
      const claim = claims[index] as Signed;
      return isTurnedAway(await answer) ? payUntil(claim, (again) => !isPending(again)) : answer;
    }),
  );
  expect(growth()).toBeLessThan(MOST_GROWN_MIB);
  expect(open).toBeLessThanOrEqual(CONNECTIONS);
  expect(held).toBe(0);
  expect(p50).toBeLessThan(READ_LIMIT_MS.p50);
  expect(p99).toBeLessThan(READ_LIMIT_MS.p99);
  await expectDecidedOnce(claims, finished);
});
