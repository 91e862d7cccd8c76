import { expect, test } from "vitest";
import type { EntryType } from "../../../packages/verifier/src/tlog/entry-types.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { readProof } from "../../support/log/memory-log.ts";
import { storeLog } from "../../support/log/stored-log.ts";
import { startService } from "../../support/service/service.ts";

const chain = await forFile(startTestChain());
const first = await forFile(startService({ chain, jobs: false }));
const config = { log: { ...first.config.log, generation: 2 } };
const service = await forFile(startService({ chain, jobs: false, database: first.database, config }));

const entry = (type: EntryType, ref: string) => ({ type, ref, entry: Buffer.from(JSON.stringify({ id: ref, type })) });
const ID = "00000000000000a1";
await (await storeLog(service.database, "old/log", 1)).grow([entry("policy", "1"), entry("certificate", ID)]);
await (await storeLog(service.database, "new/log/2", 2)).grow([entry("policy", "2"), entry("reversal", ID)]);

const get = (path: string) => fetch(`${service.url}${path}`);

test.each([
  ["/log/checkpoint", "old/log"],
  ["/log/2/checkpoint", "new/log/2"],
])("%s is that of %s", async (path, origin) => {
  const answer = await get(path);
  expect([answer.status, (await answer.text()).split("\n")[0]]).toEqual([200, origin]);
});

test.each([
  ["/log/tile/0/000.p/2", 200],
  ["/log/2/tile/0/000.p/1", 200],
  ["/log/2/tile/entries/000.p/1", 200],
  ["/log/2/entry/0.tlog-proof", 200],
  ["/log/2/tile/0/000.p/3", 404],
  ["/log/2/entry/2", 404],
  ["/log/3/checkpoint", 404],
  ["/log/02/checkpoint", 404],
])("each generation is served as far as it goes: %s is a %i", async (path, status) => {
  expect((await get(path)).status).toBe(status);
});

test.each([
  [`/cert/${ID}.tlog-proof`, 1, "old/log"],
  [`/cert/${ID}.tlog-proof?type=reversal`, 1, "new/log/2"],
  ["/log/entry/1.tlog-proof", 1, "old/log"],
])("%s proves entry %i of %s, and leads to what was said last of its record", async (path, index, origin) => {
  const answer = await get(path);
  const { index: proven, checkpoint } = readProof(await answer.text());
  expect([proven, checkpoint.split("\n")[0]]).toEqual([index, origin]);
  const newest = path.startsWith("/cert") ? `/cert/${ID}.tlog-proof?type=reversal` : `/cert/${ID}.tlog-proof`;
  expect(answer.headers.get("link")).toBe(`<${newest}>; rel="latest-version"`);
});

test("the newest generation is the log, and those before it have ended", async () => {
  const log = (await (await get("/log")).json()) as { origin: string; generations: { ended: boolean }[] };
  expect([log.origin, log.generations.map(({ ended }) => ended)]).toEqual(["new/log/2", [true, false]]);
});
