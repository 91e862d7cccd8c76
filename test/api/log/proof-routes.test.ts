import { describe, expect, test } from "vitest";
import { createCertificateStore } from "../../../api/adapters/postgres/certificate-store.ts";
import { connect } from "../../../api/adapters/postgres/connection.ts";
import { createLogStore } from "../../../api/adapters/postgres/log-store.ts";
import { NETWORKS } from "../../../api/kernel/networks.ts";
import { createProveEntry } from "../../../api/log/prove-entries.ts";
import { parseCheckpoint } from "../../../packages/verifier/src/tlog/checkpoint.ts";
import type { EntryType } from "../../../packages/verifier/src/tlog/entry-types.ts";
import { leafHash } from "../../../packages/verifier/src/tlog/hash.ts";
import { parseNote } from "../../../packages/verifier/src/tlog/note.ts";
import { verifyInclusion } from "../../../packages/verifier/src/tlog/tree.ts";
import { PASSING } from "../../support/certification/samples.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { readProof } from "../../support/log/read-proof.ts";
import { type StoredEntry, storeLog } from "../../support/log/stored-log.ts";
import { send } from "../../support/payments/requests.ts";
import { startService } from "../../support/service/service.ts";

const LOGGED = "00000000000000a1";
const REVERSED = "00000000000000a2";
const WAITING = "00000000000000a3";
const VERDICT = "0".repeat(31).concat("b");
const PAYMENT = `0x${"0c".repeat(32)}`;

const chain = await forFile(startTestChain());
const service = await forFile(startService({ chain, jobs: false }));
const pool = await forFile(connect(service.database.apiUrl));
const certificates = createCertificateStore(pool);
const asset = NETWORKS["eip155:8453"].usdc.address;
for (const [ordinal, id] of [LOGGED, REVERSED, WAITING].entries()) {
  const payment = {
    network: "eip155:8453",
    asset,
    payer: PASSING.wallet,
    nonce: `0x${`${ordinal}`.repeat(64)}`,
  } as const;
  const { text, values } = certificates.adding({ ...PASSING, id }, { payment, also: null });
  await pool.query(text, [...values]);
}

const entry = (type: EntryType, ref: string): StoredEntry => ({
  type,
  ref,
  entry: Buffer.from(JSON.stringify({ document: { of: ref }, id: ref, type, version: 1 })),
});
const log = await storeLog(service.database, "trust.test/log");
const ENTRIES = [
  entry("policy", "1"),
  entry("certificate", LOGGED),
  entry("certificate", REVERSED),
  entry("verdict", VERDICT),
  entry("evaluation", PAYMENT),
  entry("contest_answer", PAYMENT),
  entry("reversal", REVERSED),
  ...Array.from({ length: 260 }, (_, index) => entry("score_version", `${index}`)),
];
await log.grow(ENTRIES);
const REVERSAL = 6;

const get = (path: string, headers: Record<string, string> = {}) => fetch(`${service.url}${path}`, { headers });
const json = async (path: string) => (await (await get(path)).json()) as Record<string, unknown>;

/** Throws unless the proof leads from the entry to the root that the log has signed. */
async function proven(path: string) {
  const answer = await get(path);
  expect([answer.status, path]).toEqual([200, path]);
  const proof = readProof(await answer.text());
  expect(proof.magic).toBe("c2sp.org/tlog-proof@v1");
  const { root, size, origin } = parseCheckpoint(parseNote(proof.checkpoint).text);
  expect([size, origin]).toEqual([ENTRIES.length, log.origin]);
  verifyInclusion({ index: proof.index, size, leaf: leafHash(proof.entry), root, proof: proof.hashes });
  expect(proof.entry.equals(ENTRIES[proof.index]?.entry ?? Buffer.alloc(0))).toBe(true);
  return { index: proof.index, link: answer.headers.get("link"), headers: answer.headers };
}

describe("a proof beside a record", () => {
  test.each([
    [`/cert/${LOGGED}.tlog-proof`, 1, `/cert/${LOGGED}.tlog-proof`],
    [`/cert/${LOGGED}.tlog-proof?type=certificate`, 1, `/cert/${LOGGED}.tlog-proof`],
    [`/cert/${REVERSED}.tlog-proof`, 2, `/cert/${REVERSED}.tlog-proof?type=reversal`],
    [`/cert/${REVERSED}.tlog-proof?type=reversal`, REVERSAL, `/cert/${REVERSED}.tlog-proof?type=reversal`],
    [`/arbiter/verdict/${VERDICT}.tlog-proof`, 3, `/arbiter/verdict/${VERDICT}.tlog-proof`],
    [`/escrow/evaluation/${PAYMENT}.tlog-proof`, 4, `/escrow/evaluation/${PAYMENT}.tlog-proof?type=contest_answer`],
    [`/escrow/evaluation/${PAYMENT.toUpperCase().replace("X", "x")}.tlog-proof?type=contest_answer`, 5, null],
    ["/log/entry/0.tlog-proof", 0, "/log/entry/0.tlog-proof"],
    ["/log/entry/3.tlog-proof", 3, `/arbiter/verdict/${VERDICT}.tlog-proof`],
    ["/log/entry/266.tlog-proof", 266, "/log/entry/266.tlog-proof"],
  ])("%s proves entry %i, and links the newest one about it", async (path, index, newest) => {
    const proof = await proven(path);
    expect(proof.index).toBe(index);
    if (newest !== null) expect(proof.link).toBe(`<${newest}>; rel="latest-version"`);
    expect(Object.fromEntries(proof.headers)).toMatchObject({
      "content-type": "text/plain; charset=utf-8",
      "cache-control": "no-cache",
      "access-control-allow-origin": "*",
    });
    const held = await get(path, { "if-none-match": proof.headers.get("etag") ?? "" });
    expect(held.status).toBe(304);
  });

  test("of a record that waits for its place says when to ask again, and no cache keeps that", async () => {
    const answer = await get(`/cert/${WAITING}.tlog-proof`);
    expect([answer.status, answer.headers.get("retry-after"), answer.headers.get("cache-control")]).toEqual([
      503,
      "1",
      "no-store",
    ]);
    expect(await answer.json()).toMatchObject({ code: "not_available", detail: expect.stringContaining("Ask again") });
  });

  test.each([
    [`/cert/${LOGGED}.tlog-proof?type=reversal`, 404],
    [`/cert/${WAITING}.tlog-proof?type=proof`, 404],
    [`/arbiter/verdict/${VERDICT}.tlog-proof?type=correction`, 404],
    [`/cert/${LOGGED}.tlog-proof?type=verdict`, 400],
    [`/cert/${LOGGED}.tlog-proof?type=`, 400],
    ["/cert/ffffffffffffffff.tlog-proof", 404],
    ["/cert/.tlog-proof", 404],
    [`/cert/${LOGGED}.tlog-proof.tlog-proof`, 404],
    [`/cert/${VERDICT}.tlog-proof`, 404],
    [`/arbiter/verdict/${"f".repeat(32)}.tlog-proof`, 404],
    [`/escrow/evaluation/0x${"f".repeat(64)}.tlog-proof`, 404],
    [`/escrow/evaluation/${"f".repeat(64)}.tlog-proof`, 404],
    ["/log/entry/267.tlog-proof", 404],
    ["/log/entry/00.tlog-proof", 404],
    ["/log/entry/-1.tlog-proof", 404],
    ["/log/entry/1e2.tlog-proof", 404],
    ["/log/entry/9007199254740992.tlog-proof", 404],
    ["/log/entry/9223372036854775808.tlog-proof", 404],
    ["/log/entry/.tlog-proof", 404],
    ["/log/entry/99999999999999999999999999", 404],
    ["/log/entry/%30", 200],
  ])("%s is answered with %i", async (path, status) => {
    const answer = await get(path);
    expect(answer.status).toBe(status);
    if (status !== 200) expect(answer.headers.get("cache-control")).toBe("no-store");
  });

  test("shares its path with the record, which is answered as before", async () => {
    expect(await json(`/cert/${WAITING}`)).toMatchObject({ id: WAITING });
    expect((await get(`/cert/${WAITING}.json`)).status).toBe(404);
    expect((await fetch(`${service.url}/cert/${LOGGED}.tlog-proof`, { method: "POST" })).status).toBe(405);
    expect((await fetch(`${service.url}/cert/${LOGGED}.tlog-proof`, { method: "HEAD" })).status).toBe(200);
  });

  test("reads at most two tiles of a level, however large the tree", async () => {
    const store = createLogStore(pool);
    const asked: number[] = [];
    const prove = createProveEntry({
      store: {
        tiles: (generation, ids) => {
          asked.push(ids.length);
          return store.tiles(generation, ids);
        },
      },
      checkpoints: { proving: store.newest, quorum: 0 },
      elapsedMs: () => 0,
    });
    const place = await store.at(1, 100);
    if (place === null) throw new Error("the log has no entry 100");
    await prove(place);
    expect(asked).toEqual([expect.any(Number)]);
    expect(asked[0]).toBeLessThanOrEqual(4);
  });
});

describe("a record says where it is in the log", () => {
  test("a certificate in its document, once it has a place", async () => {
    expect((await json(`/cert/${REVERSED}`)).log).toEqual([
      {
        generation: 1,
        index: 2,
        type: "certificate",
        proof_url: `${service.url}/cert/${REVERSED}.tlog-proof`,
        witnessed_by: [],
      },
      expect.objectContaining({
        index: REVERSAL,
        proof_url: `${service.url}/cert/${REVERSED}.tlog-proof?type=reversal`,
      }),
    ]);
    expect(await json(`/cert/${WAITING}`)).not.toHaveProperty("log");
  });

  test("its page with a link to the proof", async () => {
    const page = await (await get(`/cert/${LOGGED}`, { accept: "text/html" })).text();
    expect(page).toContain(`In the log at index <a href="/log/entry/1">1</a>, not yet cosigned by a witness.`);
    expect(page).toContain(`<a href="/cert/${LOGGED}.tlog-proof">Proof</a>`);
    // The indices of policies and of verdicts in their own counts are other numbers.
    const policy = await (await get("/arbiter/policy?version=1", { accept: "text/html" })).text();
    expect(policy).toContain(`In the log at index <a href="/log/entry/0">0</a>, not yet cosigned by a witness.`);
    expect(policy).toContain(`<a href="/log/entry/0.tlog-proof">Proof</a>`);
    const waiting = await (await get(`/cert/${WAITING}`, { accept: "text/html" })).text();
    expect(waiting).toContain("a record gets its place within seconds");
  });
});

describe("the log's own document", () => {
  test("says size, root, key, policy and the newest entries", async () => {
    const { text, status } = await send(`${service.url}/log`);
    const document = JSON.parse(text) as { checkpoint: { note: string }; newest: readonly { index: number }[] };
    const { checkpoint } = document;
    const { root } = parseCheckpoint(parseNote(checkpoint.note).text);
    expect(status).toBe(200);
    expect(document).toMatchObject({
      origin: log.origin,
      vkey: log.vkey,
      generation: 1,
      checkpoint: { size: ENTRIES.length, root_hash: Buffer.from(root).toString("base64") },
      checkpoint_url: `${service.url}/log/checkpoint`,
      quorum: 0,
      witnesses: [],
      policy: `log ${log.vkey} ${service.url}/log\nquorum none\n`,
      generations: [{ generation: 1, origin: log.origin, ended: false }],
    });
    expect(document.newest.map(({ index }) => index)).toEqual(
      Array.from({ length: 10 }, (_, place) => ENTRIES.length - 1 - place),
    );
    expect(document).not.toHaveProperty("search");
  });

  test.each([
    [REVERSED, [2, REVERSAL]],
    [` ${PAYMENT.toUpperCase().replace("X", "x")} `, [4, 5]],
    // An index, and the id of two records besides.
    ["1", [0, 8, 1]],
    ["9007199254740993", []],
    ["nothing", []],
    ["' OR 1=1 --", []],
  ])("finds %j at %j", async (id, indexes) => {
    const { search } = (await json(`/log?id=${encodeURIComponent(id)}`)) as {
      search: { found: readonly { index: number; entry: { id: string } }[] };
    };
    expect(search.found.map(({ index }) => index)).toEqual(indexes);
    for (const { index, entry: found } of search.found)
      expect(found).toEqual(JSON.parse(ENTRIES[index]?.entry.toString() ?? ""));
  });

  test.each([
    ["/log?generation=2", 404],
    ["/log?generation=0", 404],
    ["/log?generation=01", 404],
    ["/log?generation=1", 200],
    [`/log?id=${"x".repeat(81)}`, 400],
  ])("%s is answered with %i", async (path, status) => expect((await get(path)).status).toBe(status));

  test("an entry has a document and a page of its own", async () => {
    expect(await json(`/log/entry/${REVERSAL}`)).toMatchObject({
      index: REVERSAL,
      type: "reversal",
      id: REVERSED,
      record_url: `${service.url}/cert/${REVERSED}`,
      entry: { id: REVERSED, type: "reversal" },
    });
    const page = await (await get("/log/entry/0", { accept: "text/html" })).text();
    expect(page).toContain('href="/arbiter/policy?version=1"');
    expect(page).toContain('href="/log/entry/0.tlog-proof"');
  });

  test("is named by the issuer's DID document", async () => {
    expect(await json("/.well-known/did.json")).toMatchObject({
      service: [{ type: "TransparencyLog", serviceEndpoint: `${service.url}/log` }],
    });
  });
});
