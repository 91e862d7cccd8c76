import { request } from "node:http";
import { join } from "node:path";
import { expect, test } from "vitest";
import { connect } from "../../../api/adapters/postgres/connection.ts";
import { createLogStore } from "../../../api/adapters/postgres/log-store.ts";
import { createLogCheckpoints } from "../../../api/adapters/postgres/served-checkpoints.ts";
import { createWitnessStore } from "../../../api/adapters/postgres/witness-store.ts";
import { exportLogs } from "../../../scripts/log-export/export-log.ts";
import { openFolder } from "../../../scripts/log-export/folder.ts";
import { boardSeeder } from "../../support/board/seed.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { eventually } from "../../support/eventually.ts";
import { folderForFile } from "../../support/folder.ts";
import { forFile } from "../../support/for-file.ts";
import { followerOf } from "../../support/log/follow-once.ts";
import { HAS_NGINX, nginxCache, nginxFiles } from "../../support/log/nginx.ts";
import { startService } from "../../support/service/service.ts";

interface Answer {
  readonly status: number;
  readonly cache: string;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly body: Buffer;
}

/** As it is written: nothing is normalized or decoded on the way. */
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

test.runIf(HAS_NGINX)("nginx keeps tiles for good, checkpoints for a second, and errors never", async () => {
  const chain = await forFile(startTestChain());
  const service = await startService({ chain });
  const seeds = await forFile(boardSeeder(service.database));
  const work = await folderForFile("log-nginx-");
  const { url } = await forFile(nginxCache(service.url));
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

  // What is missing is asked for again each time, so it is there as soon as it is.
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

  // nginx reads these as the path of one tile, and the service as that of another one, or of none.
  for (const end of ["x001//../000", "../1//../0/000", "/000", "%30%30%30", "000%0a"]) {
    const path = `/log/tile/0/${end}`;
    expect([path, (await raw(service.url, path)).status]).toEqual([path, 404]);
    expect([path, (await raw(url, path)).body.equals(first.body)]).toEqual([path, true]);
  }
  expect((await raw(url, "/log/tile/0/000")).body.equals(first.body)).toBe(true);

  const folder = await openFolder(join(work, "files"));
  const pool = connect(service.database.apiUrl, 2);
  const [store, witnesses] = [createLogStore(pool), createWitnessStore(pool)];
  const checkpoints = createLogCheckpoints({ pool, store, witnesses, policy: { witnesses: [], quorum: 0, waitMs: 0 } });
  await exportLogs({ store, checkpoints }, folder, () => undefined);
  await Promise.all([folder.close(), pool.end()]);
  const files = await forFile(nginxFiles(join(work, "files")));
  expect(await follow(`${files.url}/log`, "through")).toMatchObject({ code: 0 });
  expect(await follow(`${files.url}/log`, "alone")).toMatchObject({ code: 0 });
  expect(await raw(files.url, "/log/checkpoint")).toMatchObject({
    status: 200,
    headers: { "cache-control": expect.stringContaining("max-age=1,"), "content-type": "text/plain; charset=utf-8" },
  });
  expect(await raw(files.url, "/log/tile/entries/000", { "accept-encoding": "gzip" })).toMatchObject({
    headers: { "cache-control": expect.stringContaining("immutable"), "content-encoding": "gzip" },
  });
  for (const path of ["/log/tile/0/777", "/.lock", "/"])
    expect(await raw(files.url, path)).toMatchObject({ status: 404, headers: { "cache-control": "no-store" } });

  const newest = await shown();
  await service.stop();
  await eventually(async () => (await raw(url, "/log/checkpoint")).cache, "STALE");
  expect(await shown()).toBe(newest);
  expect(await raw(url, "/log/tile/0/000")).toMatchObject({ status: 200, cache: "HIT" });
  expect(await raw(url, "/log/tile/2/000.p/1")).toMatchObject({ status: 502, cache: "MISS" });
});
