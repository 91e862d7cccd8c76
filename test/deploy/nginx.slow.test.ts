import { request } from "node:http";
import { expect, test } from "vitest";
import type { Network } from "../../api/platform/networks.ts";
import { boardSeeder } from "../support/board.ts";
import { startTestChain } from "../support/chain/chain.ts";
import { openOperator } from "../support/escrow/auth-capture.ts";
import { deployEscrow } from "../support/escrow/contract.ts";
import { eventually } from "../support/eventually.ts";
import { folderForFile, forFile } from "../support/for-file.ts";
import { findNginx, measured, nginxCache, stockNginx } from "../support/nginx.ts";
import { followerOf } from "../support/packages/run-command.ts";
import { post, v2 } from "../support/payments/requests.ts";
import { newPayer, signPayment } from "../support/payments/signing.ts";
import { startService } from "../support/service/service.ts";

interface Answer {
  readonly status: number;
  readonly cache: string;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly body: Buffer;
}

/** Sends the path as written, without normalizing or decoding it. */
const raw = (url: string, path: string, headers: Readonly<Record<string, string>> = {}) =>
  new Promise<Answer>((resolve, reject) => {
    const { hostname, port } = new URL(url);
    request({ hostname, port, path, headers }, (response) => {
      const parts: Buffer[] = [];
      response.on("data", (part: Buffer) => parts.push(part));
      response.on("end", () => {
        const { statusCode: status = 0, headers: got } = response;
        resolve({ status, cache: String(got["x-cache"]), headers: got, body: Buffer.concat(parts) });
      });
    })
      .on("error", reject)
      .end();
  });

const nginx = findNginx(await folderForFile("nginx-"));

test("An nginx cache keeps tiles forever, checkpoints for one second, and errors never", async ({ skip }) => {
  if (typeof nginx === "string") return skip(nginx);
  const chain = await forFile(startTestChain());
  const service = await startService({ chain });
  const seeds = await forFile(boardSeeder(service.database));
  const work = await folderForFile("log-nginx-");
  const { url } = await forFile(nginxCache(nginx.command, service.url));
  let wallet = 0;
  const sizes: number[] = [];
  const shown = async (): Promise<number> => {
    const size = Number((await (await fetch(`${url}/log/checkpoint`)).text()).split("\n")[1]);
    sizes.push(size);
    return size;
  };
  const grow = async (count: number) => {
    const size = Number((await (await fetch(`${service.url}/log/checkpoint`)).text()).split("\n")[1]) + count;
    await seeds.add(...Array.from({ length: count }, () => ({ wallet: ++wallet, issuedAt: new Date() })));
    await eventually(shown, size);
    return size;
  };
  await eventually(async () => (await fetch(`${service.url}/log/checkpoint`)).status, 200);
  const size = await grow(270);
  const follow = await followerOf(service.url, work);
  expect(await follow(`${url}/log`, "through")).toMatchObject({
    code: 0,
    text: expect.stringContaining(`${size} entr`),
  });

  const first = await raw(url, "/log/tile/0/000");
  expect([first.status, first.cache, first.body.length]).toEqual([200, "HIT", 8_192]);
  expect(first.headers["cache-control"]).toBe("public, max-age=31536000, immutable");
  const direct = await raw(service.url, "/log/tile/entries/000");
  for (const coding of ["identity", "gzip", "gzip;q=0", "br, zstd"]) {
    const bundle = await raw(url, "/log/tile/entries/000?x=1", { "accept-encoding": coding });
    expect([coding, bundle.status, bundle.cache]).toEqual([coding, 200, "HIT"]);
    if (coding === "gzip") expect(bundle.headers["content-encoding"]).toBe("gzip");
    else expect([coding, bundle.body.equals(direct.body)]).toEqual([coding, true]);
  }

  // A 404 is not cached, so the tile is served as soon as it exists.
  const soon = `/log/tile/0/001.p/${size - 256 + 1}`;
  for (const _ of "12") expect(await raw(url, soon)).toMatchObject({ status: 404, cache: "MISS" });
  await grow(1);
  expect(await raw(url, soon)).toMatchObject({ status: 200, cache: "MISS" });
  expect(await raw(url, soon)).toMatchObject({ status: 200, cache: "HIT" });
  expect(await follow(`${url}/log`, "through")).toMatchObject({
    code: 0,
    text: expect.stringContaining("1 of them new"),
  });
  expect(sizes).toEqual(sizes.toSorted((one, other) => one - other));

  // nginx reads each of these paths as one tile, while the service reads another tile or none.
  for (const end of ["x001//../000", "../1//../0/000", "/000", "%30%30%30", "000%0a"]) {
    const path = `/log/tile/0/${end}`;
    expect([path, (await raw(service.url, path)).status]).toEqual([path, 404]);
    expect([path, (await raw(url, path)).body.equals(first.body)]).toEqual([path, true]);
  }
  expect((await raw(url, "/log/tile/0/000")).body.equals(first.body)).toBe(true);

  const newest = await shown();
  await service.stop();
  await eventually(async () => (await raw(url, "/log/checkpoint")).cache, "STALE");
  expect(await shown()).toBe(newest);
  expect(await raw(url, "/log/tile/0/000")).toMatchObject({ status: 200, cache: "HIT" });
  expect(await raw(url, "/log/tile/2/000.p/1")).toMatchObject({ status: 502, cache: "MISS" });
});

/** Starts the service on one network, under a 60-character host name, behind nginx with only `proxy_pass`. */
async function behindStockNginx(command: string, network: Network) {
  const chain = await forFile(startTestChain({ network }));
  const escrowAddresses =
    network === "eip155:8453" ? [(await deployEscrow(chain)).address, (await openOperator(chain)).address] : [];
  const config = { escrowAddresses, baseUrl: `https://${"a".repeat(52)}.example`, rateLimitPerMinute: 1_000_000 };
  const service = await forFile(startService({ chain, config }));
  const direct = `http://127.0.0.1:${service.config.port}`;
  const { url } = await forFile(stockNginx(command, direct));
  return { chain, service, direct, url };
}

test.for(["eip155:8453", "eip155:84532"] as const)(
  "Stock nginx with only proxy_pass forwards every 402 on %s",
  async (network, { skip }) => {
    if (typeof nginx === "string") return skip(nginx);
    const { service, direct, url } = await behindStockNginx(nginx.command, network);
    const unpaid: string[] = [];
    for (const { method, path } of service.mounted) {
      if (method !== "POST" || (await measured(direct + path, { method })).status !== 402) continue;
      unpaid.push(path);
      expect([path, (await measured(url + path, { method })).status]).toEqual([path, 402]);
    }
    expect(unpaid).toContain("/test/basic");
  },
);

test("Stock nginx with only proxy_pass forwards a payment and its response", async ({ skip }) => {
  if (typeof nginx === "string") return skip(nginx);
  const { chain, url } = await behindStockNginx(nginx.command, "eip155:8453");
  expect(await post(`${url}/test/basic`, v2(await signPayment(await newPayer(chain))))).toMatchObject({ status: 200 });
});
