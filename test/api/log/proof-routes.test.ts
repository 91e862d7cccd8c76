import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { describe, expect, test } from "vitest";
import { createCertificateStore } from "../../../api/certificates/store.ts";
import { connect } from "../../../api/platform/db/connection.ts";
import { NETWORKS } from "../../../api/platform/networks.ts";
import { parseCheckpoint } from "../../../packages/verifier/src/tlog/checkpoint.ts";
import type { EntryType } from "../../../packages/verifier/src/tlog/entry-types.ts";
import { leafHash } from "../../../packages/verifier/src/tlog/hash.ts";
import { parseNote } from "../../../packages/verifier/src/tlog/note.ts";
import { verifyInclusion } from "../../../packages/verifier/src/tlog/tree.ts";
import { PASSING } from "../../support/certificates/samples.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { readProof } from "../../support/log/memory-log.ts";
import { type StoredEntry, storeLog } from "../../support/log/stored-log.ts";
import { send } from "../../support/payments/requests.ts";
import { startService } from "../../support/service/service.ts";

const LOGGED = "00000000000000a1";
const REVERSED = "00000000000000a2";
const WAITING = "00000000000000a3";
const VERDICT = "0".repeat(31).concat("b");
const PAYMENT = `0x${"0c".repeat(32)}`;
const KEY = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k#2";

const entry = (type: EntryType, ref: string): StoredEntry => ({
  type,
  ref,
  entry: Buffer.from(JSON.stringify({ document: { of: ref }, id: ref, type, version: 1 })),
});

const ENTRIES: readonly StoredEntry[] = [
  entry("policy", "1"),
  entry("certificate", LOGGED),
  entry("certificate", REVERSED),
  entry("verdict", VERDICT),
  entry("evaluation", PAYMENT),
  entry("contest_answer", PAYMENT),
  entry("reversal", REVERSED),
  ...Array.from({ length: 260 }, (_, index) => entry("score_version", `${index}`)),
  entry("signing_key", KEY),
];
/** The index of the reversal of `REVERSED`. */
const REVERSAL = 6;

// The log has `ENTRIES`, and three certificates, one of which waits for its place.
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
const log = await storeLog(service.database, "trust.test/log");
await log.grow(ENTRIES);

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

describe("proof at a record's URL", () => {
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
  ])("%s proves entry %i and links to the record's newest proof", async (path, index, newest) => {
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

  test("A record that still waits for its entry gets a 503 with Retry-After that no cache keeps", async () => {
    const answer = await get(`/cert/${WAITING}.tlog-proof`);
    expect([answer.status, answer.headers.get("retry-after"), answer.headers.get("cache-control")]).toEqual([
      503,
      "1",
      "no-store",
    ]);
    expect(await answer.json()).toMatchObject({ code: "not_available", detail: expect.stringContaining("retry then") });
  });

  test.each([
    [`/cert/${LOGGED}.tlog-proof?type=reversal`, 404],
    [`/cert/${WAITING}.tlog-proof?type=proof`, 404],
    [`/arbiter/verdict/${VERDICT}.tlog-proof?type=correction`, 404],
    [`/cert/${LOGGED}.tlog-proof?type=verdict`, 400],
    [`/cert/${LOGGED}.tlog-proof?TYPE=proof&type[]=proof&n=%ff&n`, 200],
    [`/cert/${LOGGED}.TLOG-PROOF`, 404],
    [`/cert/${LOGGED}.tlog-proof/`, 404],
    [`/arbiter/verdict/${LOGGED}.tlog-proof`, 404],
    [`/arbiter/verdict/${"f".repeat(32)}.tlog-proof`, 404],
    [`/escrow/evaluation/0x${"f".repeat(64)}.tlog-proof`, 404],
    ["/log/entry/268.tlog-proof", 404],
    ["/log/entry/9007199254740992.tlog-proof", 404],
    ["/log/entry/%30", 200],
  ])("%s returns %i", async (path, status) => {
    const answer = await get(path);
    expect(answer.status).toBe(status);
    if (status !== 200) expect(answer.headers.get("cache-control")).toBe("no-store");
  });

  test.each([
    [`/cert/../cert/${LOGGED}.tlog-proof`, [200, "no-cache"]],
    [`/cert/%2e%2e/cert/${LOGGED}.tlog-proof`, [200, "no-cache"]],
    [`/cert/..%2f${LOGGED}.tlog-proof`, [404, "no-store"]],
    [`//evil.example/cert/${LOGGED}.tlog-proof`, [404, "no-store"]],
    [`/cert/${LOGGED}%2etlog-proof`, [200, "no-cache"]],
    [`http://evil.example/cert/${LOGGED}.tlog-proof`, [200, "no-cache"]],
  ])("%s, sent verbatim, returns %j, so no cache keeps it under a wrong path", async (path, found) => {
    const { port } = new URL(service.url);
    const asked = request({ host: "localhost", port, path, agent: false }).end();
    const [answer] = (await once(asked, "response")) as [IncomingMessage];
    answer.resume();
    expect([answer.statusCode, answer.headers["cache-control"]]).toEqual(found);
  });

  test.each([
    { range: "bytes=0-9" },
    { "if-none-match": '"x", W/"y"' },
    { accept: "text/html" },
    { accept: "application/json;q=1, text/plain;q=0" },
  ])("The proof is sent whole and unchanged to a request with %j", async (headers) => {
    const whole = await (await get(`/cert/${LOGGED}.tlog-proof`)).text();
    const answer = await get(`/cert/${LOGGED}.tlog-proof`, headers as Record<string, string>);
    const { status } = answer;
    expect([status, answer.headers.get("content-type"), await answer.text()]).toEqual([
      200,
      "text/plain; charset=utf-8",
      whole,
    ]);
  });

  test("The proof shares its path with the record, which is served as before", async () => {
    expect(await json(`/cert/${WAITING}`)).toMatchObject({ id: WAITING });
    expect((await get(`/cert/${WAITING}.json`)).status).toBe(404);
    expect((await fetch(`${service.url}/cert/${LOGGED}.tlog-proof`, { method: "POST" })).status).toBe(405);
    const head = await fetch(`${service.url}/cert/${LOGGED}.tlog-proof`, { method: "HEAD" });
    const whole = await get(`/cert/${LOGGED}.tlog-proof`);
    for (const name of ["etag", "content-length", "content-type", "cache-control", "link"])
      expect([name, head.headers.get(name)]).toEqual([name, whole.headers.get(name)]);
    expect([head.status, await head.text()]).toEqual([200, ""]);
  });
});

describe("record with its position in the log", () => {
  test("A certificate's document names its log entries once it has some", async () => {
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
});

describe("GET /log", () => {
  test("The document has the size, root, key, policy, and newest entries", async () => {
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
    // An index that is also the ID of two records.
    ["1", [0, 8, 1]],
    ["9007199254740993", []],
    [`${REVERSED}\u0000`, []],
    ["\u2028\ufeff\ud83d\ude00%_\\", []],
    // Key IDs are case-sensitive; other IDs are found in any case.
    [KEY, [267]],
  ])("The search for %j finds %j", async (id, indexes) => {
    const { search } = (await json(`/log?id=${encodeURIComponent(id)}`)) as {
      search: { found: readonly { index: number; entry: { id: string } }[] };
    };
    expect(search.found.map(({ index }) => index)).toEqual(indexes);
    for (const { index, entry: found } of search.found)
      expect(found).toEqual(JSON.parse(ENTRIES[index]?.entry.toString() ?? ""));
  });

  test.each([
    [`/log?id=${"x".repeat(80)}`, 200],
    [`/log?id=${"x".repeat(81)}`, 400],
  ])("%s returns %i", async (path, status) => expect((await get(path)).status).toBe(status));

  test("An entry has a document and a page", async () => {
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
});
