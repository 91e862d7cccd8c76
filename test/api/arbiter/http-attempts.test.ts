import { execFile } from "node:child_process";
import { createServer, Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { VERSION_1 } from "../../../api/arbiter/policy/v1/policy.ts";
import { FETCH_LIMITS_V1 } from "../../../api/arbiter/policy/v1/tables.ts";
import type { GuardedFetchOptions } from "../../../api/platform/web/guarded-fetch/fetch.ts";
import { Busy, type Fetched } from "../../../api/platform/web/guarded-fetch/request.ts";
import { examine, factsNamed, type Handler, judged, PUBLIC_ADDRESS, startSite } from "../../support/arbiter/site.ts";
import { forFile } from "../../support/for-file.ts";

const site = await forFile(startSite());
for (const [from, to] of [
  ["/1", "/2"],
  ["/2", "/3"],
  ["/3", "/4"],
  ["/4", "/5"],
  ["/loop", "/loop"],
])
  site.handlers.set(from ?? "", (_request, response) => response.writeHead(301, { location: to }).end());
site.handlers.set("/5", (_request, response) => response.end("here"));
site.handlers.set("/up", (_request, response) =>
  response.writeHead(308, { location: "https://shop.example/5?key=1#x" }).end(),
);
site.handlers.set("/down", (_request, response) =>
  response.writeHead(302, { location: "http://shop.example/5" }).end(),
);
site.handlers.set("/away", (_request, response) => response.writeHead(303, { location: "//cdn.example/5" }).end());

const never = new AbortController().signal;
const attempt = (url: string, options: Partial<GuardedFetchOptions> = {}): Promise<Fetched> =>
  site.fetcher(options).attempt({ url, expectStatus: null, contains: null, limits: FETCH_LIMITS_V1 }, never);
const targets = ({ redirects }: Fetched) => redirects.map(({ location }) => location.replace(/^https?:\/\/[^/]+/, ""));

describe("redirects", () => {
  test("Three redirects are followed", async () => {
    const fetched = await attempt("http://shop.example/2");
    expect(fetched).toMatchObject({ failure: null, head: { status: 200 } });
    expect(targets(fetched)).toEqual(["/3", "/4", "/5"]);
  });

  test("A fourth redirect is not followed", async () => {
    const fetched = await attempt("http://shop.example/1");
    expect(fetched).toMatchObject({ failure: "redirect", head: { status: 301 }, body: null });
    expect(targets(fetched)).toEqual(["/2", "/3", "/4"]);
  });

  test("A redirect loop ends", async () => {
    const evidence = await examine("http-delivery", { url: "http://shop.example/loop" }, { fetcher: site.fetcher() });
    expect(evidence.verdict).toBe("escalate");
    expect(site.requests.filter(({ path }) => path === "/loop")).toHaveLength(8);
  });

  test("A redirect from http to https is followed, and the facts omit the query", async () => {
    const fetched = await attempt("http://shop.example/up");
    expect(fetched.redirects).toEqual([{ status: 308, location: "https://shop.example/5" }]);
    expect(fetched.head?.status).toBe(200);
    expect(site.requests.at(-1)?.path).toBe("/5?key=1");
  });

  test("A redirect from https to http is not followed", async () => {
    expect(await attempt("https://shop.example/down")).toMatchObject({
      failure: "redirect",
      redirects: [],
      head: { status: 302 },
    });
  });

  test("A redirect in raw UTF-8 is percent-encoded, and all other bytes are sent unchanged", async () => {
    const sent: [string, Buffer][] = [
      ["/utf8", Buffer.from("/grüße/日本?q=ü")],
      ["/latin1", Buffer.from("/gr\xfc\xdfe", "latin1")],
      ["/host", Buffer.from("http://bücher.example/5")],
      ["/ascii", Buffer.from("/gr%C3%BC%C3%9Fe")],
    ];
    for (const [path, location] of sent)
      site.handlers.set(path, ({ socket }) =>
        socket.end(Buffer.concat([Buffer.from("HTTP/1.1 302 Found\r\nlocation: "), location, Buffer.from("\r\n\r\n")])),
      );
    const resolve = async () => [PUBLIC_ADDRESS];
    for (const [path] of sent) await attempt(`http://shop.example${path}`, { resolve });
    const led = site.requests.filter(({ path }) => !sent.some(([from]) => from === path)).slice(-4);
    expect(led.map(({ host, path }) => `${host}${path}`)).toEqual([
      "shop.example/gr%C3%BC%C3%9Fe/%E6%97%A5%E6%9C%AC?q=%C3%BC",
      "shop.example/gr%FC%DFe",
      "xn--bcher-kva.example/5",
      "shop.example/gr%C3%BC%C3%9Fe",
    ]);
  });

  test("A redirect to another host sends that name in Host", async () => {
    expect((await attempt("http://shop.example/away")).head?.status).toBe(200);
    expect(site.requests.at(-1)).toMatchObject({ host: "cdn.example", headers: { "accept-encoding": "identity" } });
  });
});

describe("two attempts in version 1", () => {
  /** Serves these statuses in order. */
  const inTurn = (path: string, ...statuses: number[]) =>
    site.handlers.set(path, (_request, response) => response.writeHead(statuses.shift() ?? 500).end());
  const run = (path: string) =>
    examine("http-delivery", { url: `http://shop.example${path}` }, { fetcher: site.fetcher(), policies: [VERSION_1] });

  test.each([
    ["/503-200", [503, 200], "release", [503, 200]],
    ["/503-404", [503, 404], "refund", [503, 404]],
    ["/503-429-200", [503, 429, 200], "escalate", [503, 429]],
  ] as const)(
    "%s: an undecided first attempt is followed by exactly one more",
    async (...[path, statuses, verdict, seen]) => {
      inTurn(path, ...statuses);
      const evidence = await run(path);
      expect(evidence.verdict).toBe(verdict);
      expect(factsNamed(evidence, "fetch_attempt").map(({ status }) => status)).toEqual(seen);
      expect(evidence.timeline.every(({ started_at, finished_at }) => started_at <= finished_at)).toBe(true);
    },
  );
});

describe("deadline of an attempt", () => {
  const stalls = {
    "DNS that does not answer": {
      options: { resolve: () => new Promise<never>(() => {}) },
      url: "http://shop.example/5",
    },
    "a connection that is never made": { options: { dial: () => new Socket() }, url: "http://shop.example/5" },
  };

  test.concurrent.each(Object.entries(stalls))("The deadline covers %s", async (_is, { options, url }) => {
    const started = performance.now();
    expect((await attempt(url, { ...options, deadlineMs: 300 })).failure).toBe("timeout");
    expect(performance.now() - started).toBeLessThan(5_000);
  });

  test.concurrent("The deadline covers a TLS handshake that is never answered", async () => {
    const sockets: Socket[] = [];
    const silent = createServer((socket) => sockets.push(socket));
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    const dial = () => new Socket().connect((silent.address() as { port: number }).port, "127.0.0.1");
    expect((await attempt("https://shop.example/", { dial, deadlineMs: 300 })).failure).toBe("timeout");
    silent.close();
    for (const socket of sockets) socket.destroy();
  });

  test.concurrent("One deadline covers all redirects together", async () => {
    for (const step of [1, 2, 3])
      site.handlers.set(`/slow${step}`, (_request, response) =>
        setTimeout(() => response.writeHead(302, { location: `/slow${step + 1}` }).end(), 1_000),
      );
    const fetched = await attempt("http://shop.example/slow1", { deadlineMs: 2_600 });
    expect(fetched.failure).toBe("timeout");
    expect(targets(fetched)).toEqual(["/slow2", "/slow3"]);
  });
});

describe("addresses", () => {
  test("If an address does not answer, the next one is tried, IPv4 first", async () => {
    const resolve = async (name: string) =>
      name === "shop.example" ? ["2606:4700::1", "93.184.216.35", PUBLIC_ADDRESS] : [];
    site.dialled.length = 0;
    expect((await attempt("http://shop.example/5", { resolve })).head?.status).toBe(200);
    expect(site.dialled).toEqual(["93.184.216.35:80", `${PUBLIC_ADDRESS}:80`]);
  });

  test.each([
    ["refused", async () => ["93.184.216.35"]],
    ["dns", async () => Promise.reject(Object.assign(new Error("servfail"), { code: "ESERVFAIL" }))],
    ["dns", async () => []],
  ] as const)("A fetch that never connects fails as %s", async (failure, resolve) => {
    expect((await attempt("http://shop.example/5", { resolve, ownHost: "93.184.216.99" })).failure).toBe(failure);
  });

  test("An allowed origin may be loopback, but only on its exact port", async () => {
    const origin = `http://127.0.0.1:${site.port}`;
    const open = {
      allowedOrigins: [origin],
      dial: (address: string, port: number) => new Socket().connect(port, address),
    };
    expect((await attempt(`${origin}/5`, open)).head?.status).toBe(200);
    expect((await attempt(`http://localhost:${site.port}/5`, open)).failure).toBe("blocked");
    expect((await attempt(`http://127.0.0.1/5`, open)).failure).toBe("blocked");
    const evidence = await examine(
      "http-delivery",
      { url: `${origin}/5` },
      { fetcher: site.fetcher(open), allowedOrigins: [origin] },
    );
    expect(judged(evidence)).toEqual(["status true match"]);
  });
});

describe("slots", () => {
  test("At most 64 fetches run together; callers beyond that wait, and fail as Busy if no slot frees up in time", async () => {
    let open = 0;
    let most = 0;
    site.handlers.set("/hold", (_request, response) => {
      open += 1;
      most = Math.max(most, open);
      response.on("close", () => {
        open -= 1;
      });
    });
    const patient = site.fetcher({ deadlineMs: 1_000 });
    const hasty = site.fetcher({ deadlineMs: 1_000, maxFetches: 2, queueMs: 100 });
    const hold = (fetcher: typeof patient) =>
      fetcher.attempt(
        { url: "http://shop.example/hold", expectStatus: null, contains: null, limits: FETCH_LIMITS_V1 },
        never,
      );
    const all = await Promise.all(Array.from({ length: 100 }, () => hold(patient)));
    expect(all.map(({ failure }) => failure)).toEqual(Array(100).fill("timeout"));
    expect(most).toBe(64);
    const settled = await Promise.allSettled([1, 2, 3].map(() => hold(hasty)));
    expect(settled.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "rejected"]);
    expect((settled[2] as PromiseRejectedResult).reason).toBeInstanceOf(Busy);
    expect((await hold(hasty)).failure).toBe("timeout");
  });

  test("A caller that gives up frees its slot and produces no observation", async () => {
    const fetcher = site.fetcher({ maxFetches: 1 });
    const gone = new AbortController();
    const lost = fetcher.attempt(
      { url: "http://shop.example/hold", expectStatus: null, contains: null, limits: FETCH_LIMITS_V1 },
      gone.signal,
    );
    setTimeout(() => gone.abort(new Error("gave up")), 50);
    await expect(lost).rejects.toThrow("gave up");
    const next = await fetcher.attempt(
      { url: "http://shop.example/5", expectStatus: null, contains: null, limits: FETCH_LIMITS_V1 },
      never,
    );
    expect(next.head?.status).toBe(200);
  });
});

const FLOOD = fileURLToPath(new URL("../../support/arbiter/flood.ts", import.meta.url));
const MIB = 2 ** 20;

/** An endless body that takes many seconds to reach the size limit. */
const slow: Handler = (_request, response) => {
  response.writeHead(200);
  const timer = setInterval(() => response.write(Buffer.alloc(32_768)), 20);
  response.on("close", () => clearInterval(timer));
};
const fast: Handler = (_request, response) => {
  response.writeHead(200);
  const more = () => {
    while (!response.destroyed && response.write(Buffer.alloc(65_536)));
  };
  response.on("drain", more);
  more();
};
const bomb =
  (coding: string, bytes: Uint8Array): Handler =>
  (_request, response) =>
    response.writeHead(200, { "content-encoding": coding }).end(bytes);

site.handlers.set("/slow", slow);
site.handlers.set("/fast", fast);
site.handlers.set("/gzip", bomb("gzip", gzipSync(Buffer.alloc(40 * MIB))));
site.handlers.set("/br", bomb("br", brotliCompressSync(Buffer.alloc(40 * MIB))));

describe("memory", () => {
  // 64 buffered bodies of the maximum size would take 640 MiB. A brotli window alone may take 16 MiB (RFC 7932, section
  // 9.1).
  test.concurrent.each([
    ["sent slowly", ["/slow"], 1_500, ["timeout"], 160],
    [
      "sent fast, with gzip and brotli bombs among them",
      ["/fast", "/gzip", "/br"],
      6_000,
      ["too_large", "timeout"],
      300,
    ],
  ] as const)(
    "64 concurrent endless bodies, %s, are not buffered",
    async (...[_is, paths, deadlineMs, expected, mostMiB]) => {
      const origin = `http://127.0.0.1:${site.port}`;
      const { stdout } = await promisify(execFile)(process.execPath, [FLOOD, origin, String(deadlineMs), ...paths]);
      const { grownMiB, failures } = JSON.parse(stdout) as { grownMiB: number; failures: string[] };
      expect(failures).toContain(expected[0]);
      expect(expected).toEqual(expect.arrayContaining(failures));
      expect(grownMiB).toBeLessThan(mostMiB);
    },
  );
});
