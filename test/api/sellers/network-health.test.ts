import fc from "fast-check";
import { createPublicClient, http, type PublicClient } from "viem";
import { expect, test } from "vitest";
import { createHeadLook } from "../../../api/sellers/chain.ts";
import { watchNetworkHealth } from "../../../api/sellers/network-health.ts";
import type { Transport } from "../../../packages/seller-check/src/exam/exchange.ts";
import { ExaminersFault } from "../../../packages/seller-check/src/exam/ledger.ts";
import { serveHttp } from "../../support/http-server.ts";

const BLOCK_MS = 2_000;
const REQUEST = { method: "GET", url: "https://seller.example/", headers: {}, body: null };

/** Time that passes only when the test advances it. */
function virtualTime() {
  let now = 0;
  let timers: { at: number; readonly ms: number | null; readonly run: () => void }[] = [];
  const settle = async () => {
    for (let turn = 0; turn < 20; turn++) await Promise.resolve();
  };
  return {
    elapsed: () => now,
    sleep: (ms: number) => new Promise<void>((run) => timers.push({ at: now + ms, ms: null, run })),
    every: (ms: number, run: () => void) => {
      const timer = { at: now + ms, ms, run };
      timers.push(timer);
      return () => {
        timers = timers.filter((one) => one !== timer);
      };
    },
    /** Advances time without running anything, as if the process were suspended. */
    freeze: (ms: number) => {
      now += ms;
    },
    async pass(ms: number) {
      const until = now + ms;
      await settle();
      for (;;) {
        const next = timers.toSorted((one, other) => one.at - other.at)[0];
        if (next === undefined || next.at > until) break;
        now = Math.max(now, next.at);
        if (next.ms === null) timers = timers.filter((one) => one !== next);
        else next.at = now + next.ms;
        next.run();
        await settle();
      }
      now = Math.max(now, until);
    },
  };
}

interface Outage {
  readonly from: number;
  readonly until: number;
}

/** Returns the outcome of a request that fails after a while, with an outage on our side. */
async function requestThatFails(afterMs: number, outage: Outage, node: "remote" | "own" | "lags" | "busy") {
  const time = virtualTime();
  const isOut = () => time.elapsed() >= outage.from && time.elapsed() < outage.until;
  const lagMs = node === "lags" ? 7_000 : 0;
  const head = () => BigInt(Math.floor((1_000_000 + time.elapsed() - lagMs) / BLOCK_MS));
  let known = head();
  const block = async () => {
    if (isOut() && node === "busy") return null;
    if (isOut() && node !== "own") throw new Error("the node cannot be read");
    if (!isOut()) known = head();
    return known;
  };
  const health = watchNetworkHealth({ ...time, block, resolves: async () => true });
  const silent: Transport = {
    send: () => time.sleep(afterMs).then(() => Promise.reject(new Error("no answer"))),
    sendAndHangUp: async () => undefined,
  };
  const sent = health.over(silent).send(REQUEST).catch(String);
  await time.pass(60_000);
  expect(await sent).toBe("Error: no answer");
  const ending = health.requireWorked().then(
    () => "worked",
    (error: unknown) => error,
  );
  await time.pass(60_000);
  return ending;
}

const NEVER = { from: 0, until: 0 };

test.each(["remote", "own", "lags"] as const)(
  "A seller's silence is not excused while the chain advances, as read from a node of kind %s",
  async (node) => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: 15_000 }), async (afterMs) => {
        expect(await requestThatFails(afterMs, NEVER, node)).toBe("worked");
      }),
      { numRuns: 100 },
    );
  },
);

test("An outage on our side during a request is not blamed on the seller", async () => {
  const scene = fc.record({
    afterMs: fc.integer({ min: 0, max: 15_000 }),
    // Reads are two seconds apart.
    lasts: fc.integer({ min: 2_001, max: 30_000 }),
    share: fc.double({ min: 0, max: 1, noNaN: true }),
  });
  await fc.assert(
    fc.asyncProperty(scene, async ({ afterMs, lasts, share }) => {
      const from = Math.floor(share * afterMs);
      const found = await requestThatFails(afterMs, { from, until: from + lasts }, "remote");
      expect(found).toBeInstanceOf(ExaminersFault);
    }),
    { numRuns: 300 },
  );
});

test.each([
  [15_000, { from: 1_000, until: 14_000 }],
  [15_000, { from: 14_000, until: 30_000 }],
  [0, { from: 0, until: 12_000 }],
])("An outage behind our own node shows as a stalled chain: %i %j", async (afterMs, outage) => {
  expect(await requestThatFails(afterMs, outage, "own")).toBeInstanceOf(ExaminersFault);
});

test.each([
  [1_000, 6_000, "worked"],
  [1_000, 12_000, expect.any(ExaminersFault)],
])(
  "A node that answers without a block from %i to %i ms is a network fault only if that lasts",
  async (from, until, found) => {
    expect(await requestThatFails(15_000, { from, until }, "busy")).toEqual(found);
  },
);

test("A rate-limited node counts as answering, and an unreachable one does not", async () => {
  const busy = await serveHttp((_, response) => void response.writeHead(429).end("too many requests"));
  const [client, unreachable] = [busy.url, "http://127.0.0.1:9"].map((url) =>
    createPublicClient({ transport: http(url, { retryCount: 0 }) }),
  );
  expect(await createHeadLook({ client: client as PublicClient })()).toBeNull();
  await expect(createHeadLook({ client: unreachable as PublicClient })()).rejects.toThrow(/HTTP request failed/);
  busy.stop();
});

const steady = (time: ReturnType<typeof virtualTime>) => async () => BigInt(Math.floor(time.elapsed() / BLOCK_MS));

test("A process that was suspended during a request does not blame the seller", async () => {
  const time = virtualTime();
  const health = watchNetworkHealth({ ...time, block: steady(time), resolves: async () => true });
  const silent = {
    send: () => time.sleep(15_000).then(() => Promise.reject(new Error("late"))),
  } as unknown as Transport;
  const sent = health.over(silent).send(REQUEST).catch(String);
  await time.pass(5_000);
  time.freeze(20_000);
  await time.pass(30_000);
  await sent;
  await expect(health.requireWorked()).rejects.toThrow(ExaminersFault);
});

test("Names that do not resolve are not blamed on the seller, and nothing more is sent", async () => {
  const time = virtualTime();
  let sent = 0;
  const health = watchNetworkHealth({
    ...time,
    block: steady(time),
    resolves: () => Promise.reject(new Error("no resolver")),
  });
  const transport = health.over({
    send: async () => {
      sent += 1;
      throw new Error("dns");
    },
    sendAndHangUp: async () => undefined,
  });
  await expect(transport.send(REQUEST)).rejects.toThrow("dns");
  await time.pass(10_000);
  await expect(transport.send(REQUEST)).rejects.toThrow(ExaminersFault);
  await expect(transport.sendAndHangUp(REQUEST)).rejects.toThrow(/names could not be resolved/);
  expect(sent).toBe(1);
});
