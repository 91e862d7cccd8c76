import { isIP, type LookupFunction, Socket } from "node:net";
import fc from "fast-check";
import { createPublicClient, http, type PublicClient } from "viem";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Failed } from "../../../api/platform/web/guarded-fetch/dial.ts";
import { createHeadLook } from "../../../api/sellers/chain.ts";
import { watchNetworkHealth } from "../../../api/sellers/network-health.ts";
import { createVisitor, type Visitor } from "../../../api/sellers/visitor-web.ts";
import type { Transport } from "../../../packages/seller-check/src/exam/exchange.ts";
import { ExaminersFault } from "../../../packages/seller-check/src/exam/ledger.ts";
import { HOSTILE_URLS, LEADS_INSIDE } from "../../support/arbiter/urls.ts";
import { serveHttp } from "../../support/http-server.ts";

describe("A visit to a seller", () => {
  const PUBLIC = "93.184.216.34";
  const names: Record<string, readonly (readonly string[])[]> = {};

  /** Each lookup of a name returns the next answer, and the last one repeats. */
  const resolve = async (name: string): Promise<readonly string[]> => {
    const answers = names[name];
    if (answers === undefined) return name === "trust.example" ? [OWN] : (LEADS_INSIDE[name] ?? [PUBLIC]);
    if (answers.length > 1) names[name] = answers.slice(1);
    return answers[0] ?? [];
  };
  const OWN = "93.184.216.99";
  const visitor = createVisitor({
    ownHost: "trust.example",
    allowedOrigins: [],
    interfaces: () => ["93.184.216.77", "2606:4700::77"],
    userAgent: "exam",
    resolve,
  });
  const dialed: unknown[] = [];

  interface Dial {
    readonly host: string;
    readonly lookup: LookupFunction;
  }

  // No real connection is made. Each one ends once its addresses are known.
  beforeEach(() => {
    dialed.length = 0;
    vi.spyOn(Socket.prototype, "connect").mockImplementation(function (this: Socket, ...args: unknown[]) {
      const [{ host, lookup }] = args.flat() as [Dial];
      const end = (error: Error | null, found: unknown) => {
        if (error === null) dialed.push(found);
        process.nextTick(() => this.destroy(error ?? new Error("dialed")));
      };
      if (isIP(host) > 0) end(null, host);
      else lookup(host, { all: true }, end);
      return this;
    });
  });
  afterEach(() => vi.restoreAllMocks());

  const transport = () => visitor.visit(5_000, new AbortController().signal);
  const request = (url: string) => ({ method: "GET", url, headers: {}, body: null });

  test("A public seller is dialed, which shows that the next test can fail", async () => {
    await expect(transport().send(request("http://public.example/"))).rejects.toThrow("dialed");
    expect(dialed).toHaveLength(1);
  });

  test.each(HOSTILE_URLS.filter((url) => URL.canParse(url)))(
    "%s is never dialed, not even for a request that hangs up",
    async (url) => {
      await expect(transport().send(request(url))).rejects.not.toThrow("dialed");
      await expect(transport().sendAndHangUp(request(url))).rejects.not.toThrow("dialed");
      expect(dialed).toEqual([]);
    },
  );

  test("A name that later resolves to a private address is no longer dialed", async () => {
    names["rebound.example"] = [[PUBLIC], ["127.0.0.1"]];
    await expect(transport().send(request("http://rebound.example/"))).rejects.toThrow("dialed");
    await expect(transport().send(request("http://rebound.example/"))).rejects.not.toThrow("dialed");
    expect(dialed).toHaveLength(1);
  });

  test("A name that resolves to a public and a private address is not dialed", async () => {
    names["both.example"] = [[PUBLIC, "10.0.0.1"]];
    await expect(transport().send(request("http://both.example/"))).rejects.not.toThrow("dialed");
    expect(dialed).toEqual([]);
  });

  test("After a failed lookup, the resolver is checked with a random name below our host, but not for a local host", async () => {
    const asked: string[] = [];
    const resolving = (ownHost: string, answer: () => Promise<readonly string[]>) => {
      const settings = { ownHost, allowedOrigins: [], interfaces: () => [], userAgent: "exam" };
      return createVisitor({
        ...settings,
        resolve: (name) => {
          asked.push(name);
          return answer();
        },
      });
    };
    const failed = (visited: Visitor) =>
      visited
        .visit(5_000, new AbortController().signal)
        .send(request("https://seller.example/"))
        .catch((error: unknown) => error);
    const none = async () => [];
    const unclear = () => Promise.reject(new Error("ESERVFAIL"));
    const found: boolean[] = [];
    for (const answer of [none, unclear]) {
      const visited = resolving("trust.example", answer);
      const failure = await failed(visited);
      asked.length = 0;
      found.push(await visited.resolves(failure), await visited.resolves(new Error("reset")));
      expect(asked).toEqual([expect.stringMatching(/^[0-9a-f]{16}\.trust\.example$/), "trust.example"]);
    }
    expect(found).toEqual([true, true, false, true]);
    asked.length = 0;
    for (const host of ["localhost", "trust.localhost", "127.0.0.1", "93.184.216.99", "[::1]"])
      expect(await resolving(host, unclear).resolves(new Failed("dns"))).toBe(true);
    expect(asked).toEqual([]);
  });
});

describe("The health of our network", () => {
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
});
