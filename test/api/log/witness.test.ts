import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, describe, expect, test } from "vitest";
import { formatCheckpoint, parseCheckpoint } from "../../../packages/verifier/src/tlog/checkpoint.ts";
import { signNote, verifyNote } from "../../../packages/verifier/src/tlog/note.ts";
import { parseVerifierKey } from "../../../packages/verifier/src/tlog/verifier-key.ts";
import { addCheckpoint, type WitnessParts } from "../../../scripts/witness/add-checkpoint.ts";
import { openRecords } from "../../../scripts/witness/records.ts";
import { readWitnessSettings } from "../../../scripts/witness/settings.ts";
import { noteSigner } from "../../../scripts/witness/signer.ts";
import { offerOf, texts, toyLog, witnessProcess } from "../../support/log/witness.ts";

const folder = mkdtempSync(join(tmpdir(), "witness-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const ORIGIN = "trust.example/log";
const log = await toyLog(ORIGIN, texts(300));
const forked = await toyLog(ORIGIN, texts(300, { at: 5 }));
const stranger = await toyLog("stranger.example/log", texts(10));
const impostor = await toyLog(ORIGIN, texts(300), Buffer.alloc(32, 9));
const signer = await noteSigner("witness.example/w1", "witness", Buffer.alloc(32, 8));
const keys = [log.signer.key, signer.key];

let files = 0;
function witness(now: () => Date = () => new Date("2026-11-23T21:00:00Z")) {
  const records = openRecords(join(folder, `${files++}.db`));
  const parts: WitnessParts = { signer, logs: new Map([[ORIGIN, [log.signer.key]]]), records, now };
  return { parts, records, ask: (body: string) => addCheckpoint(parts, body) };
}
const status = async (answer: ReturnType<typeof addCheckpoint>) => (await answer).status;

describe("POST /add-checkpoint", () => {
  test("The first checkpoint needs no proof, the next one continues it, and the same one is cosigned again", async () => {
    const { ask } = witness();
    for (const [from, to] of [
      [0, 0],
      [0, 3],
      [3, 256],
      [256, 300],
      [300, 300],
    ] as const) {
      const { status, body } = await ask(await log.offer(from, to));
      expect(status).toBe(200);
      const { text, signatures } = await verifyNote(`${await log.checkpointAt(to)}${body}`, keys);
      expect(parseCheckpoint(text).size).toBe(to);
      expect(signatures.map(({ key }) => key.name)).toEqual([ORIGIN, "witness.example/w1"]);
      expect(signatures[1]?.seconds).toBe(Date.parse("2026-11-23T21:00:00Z") / 1_000);
    }
  });

  test("A malformed or shrinking checkpoint is a 400", async () => {
    const { ask } = witness();
    const checkpoint = await log.checkpointAt(3);
    const proof = await log.proof(3, 7);
    const wrong = [
      "",
      "old 0\n",
      `old 00\n\n${checkpoint}`,
      `old -1\n\n${checkpoint}`,
      `old 9007199254740993\n\n${checkpoint}`,
      `0\n\n${checkpoint}`,
      `old 3\nAAAA\n\n${checkpoint}`,
      offerOf(
        3,
        Array.from({ length: 64 }, () => proof[0] ?? new Uint8Array(32)),
        checkpoint,
      ),
      `old 0\n\n${checkpoint.replace("\n\n", "\n")}`,
      await log.offer(0, 3).then((body) => body.replace(/^old 0/, "old 4")),
      offerOf(0, [], await signNote(`${ORIGIN}\n03\nAAAA\n`, log.signer)),
    ];
    for (const body of wrong) expect.soft(await status(ask(body)), JSON.stringify(body.slice(0, 60))).toBe(400);
  });

  test("An unknown log is a 404, and a missing or invalid signature of the log is a 403", async () => {
    const { ask } = witness();
    expect(await status(ask(await stranger.offer(0, 3)))).toBe(404);
    expect(await status(ask(await impostor.offer(0, 3)))).toBe(403);
    const good = await log.checkpointAt(3);
    const other = await log.checkpointAt(4);
    const broken = `${good.slice(0, good.lastIndexOf("\n\n") + 2)}${other.slice(other.lastIndexOf("\n\n") + 2)}`;
    expect(await status(ask(offerOf(0, [], broken)))).toBe(403);
    expect(await status(ask(await log.offer(0, 3)))).toBe(200);
  });

  test("A 409 names the size that the witness has", async () => {
    const { ask } = witness();
    expect(await ask(await log.offer(2, 3))).toEqual({ status: 409, type: "text/x.tlog.size", body: "0\n" });
    await ask(await log.offer(0, 7));
    for (const from of [0, 3, 8])
      expect(await ask(await log.offer(from, 9))).toEqual({ status: 409, type: "text/x.tlog.size", body: "7\n" });
  });

  test("A fork, an invalid or superfluous proof, and an empty tree with a wrong root are a 422", async () => {
    const { ask, records } = witness();
    await ask(await log.offer(0, 7));
    expect(await status(ask(await forked.offer(7, 9)))).toBe(422);
    expect(await status(ask(await forked.offer(7, 7)))).toBe(422);
    expect(await status(ask(offerOf(7, [], await log.checkpointAt(9))))).toBe(422);
    expect(await status(ask(offerOf(7, await log.proof(6, 9), await log.checkpointAt(9))))).toBe(422);
    expect(records.latest(ORIGIN)?.size).toBe(7);
    const fresh = witness();
    expect(await status(fresh.ask(offerOf(0, await log.proof(3, 9), await log.checkpointAt(9))))).toBe(422);
    const empty = await signNote(formatCheckpoint({ origin: ORIGIN, size: 0, root: Buffer.alloc(32, 1) }), log.signer);
    expect(await status(fresh.ask(offerOf(0, [], empty)))).toBe(422);
    expect(fresh.records.latest(ORIGIN)).toBeNull();
  });

  test("Concurrent requests for one log never lower its record, and exactly one of them is cosigned", async () => {
    const { ask, records } = witness();
    await ask(await log.offer(0, 5));
    const sizes = [6, 9, 7, 30, 8, 200, 6, 300];
    const answers = await Promise.all(sizes.map(async (to) => ask(await log.offer(5, to))));
    const won = sizes.filter((_, at) => answers[at]?.status === 200);
    expect(won).toHaveLength(1);
    expect(records.latest(ORIGIN)?.size).toBe(won[0]);
    for (const { status, body } of answers.filter(({ status }) => status !== 200))
      expect([status, body]).toEqual([409, `${won[0]}\n`]);
  });

  test("A checkpoint overtaken by a larger one during signing gets no cosignature", async () => {
    const { parts, records } = witness();
    await addCheckpoint(parts, await log.offer(0, 5));
    let isFirst = true;
    const sign = async (message: Uint8Array) => {
      if (isFirst) {
        isFirst = false;
        expect((await addCheckpoint(parts, await log.offer(5, 9))).status).toBe(200);
      }
      return signer.sign(message);
    };
    const slow = { ...parts, signer: { ...signer, sign } };
    expect(await addCheckpoint(slow, await log.offer(5, 6))).toMatchObject({ status: 409, body: "9\n" });
    expect(records.latest(ORIGIN)?.size).toBe(9);
  });

  test("If two processes share a record, only one of them replaces what both have read", async () => {
    const { parts, records } = witness();
    await addCheckpoint(parts, await log.offer(0, 5));
    const file = join(folder, `${files - 1}.db`);
    const other = openRecords(file);
    const before = records.latest(ORIGIN);
    const head = (size: number) => ({ size, root: new Uint8Array(32), seconds: 1, checkpoint: "" });
    expect(other.advance(ORIGIN, other.latest(ORIGIN), head(8))).toBe(true);
    expect(records.advance(ORIGIN, before, head(6))).toBe(false);
    expect(records.latest(ORIGIN)?.size).toBe(8);
    other.close();
  });
});

test("Every missing or invalid setting is named", () => {
  expect(readWitnessSettings({ WITNESS_KEY: "x", WITNESS_NAME: "a b", WITNESS_LOGS: "no" })).toEqual({
    problem: expect.stringMatching(
      /^WITNESS_NAME is wrong: .*\nWITNESS_KEY is wrong: .*\nWITNESS_LOGS is wrong: expected vkeys.*\nWITNESS_STATE is missing: /,
    ),
  });
});

test("Over HTTP, a witness killed before or after its response forgets no cosignature and signs no fork", async () => {
  const process = await witnessProcess(folder, "witness.example/w2", [log.signer.key.vkey]);
  const path = `/${createHash("sha256").update(ORIGIN).digest("hex")}/checkpoint`;
  const post = async (body: string) => {
    const response = await fetch(`${process.url}/add-checkpoint`, { method: "POST", body });
    return { status: response.status, type: response.headers.get("content-type"), body: await response.text() };
  };
  await process.start();
  expect((await fetch(process.url + path)).status).toBe(404);
  expect((await fetch(`${process.url}/add-checkpoint`)).status).toBe(405);
  expect((await post("x".repeat(300_000))).status).toBe(413);
  expect((await post(await log.offer(0, 5))).status).toBe(200);

  // The check has passed, and the request waits for the write lock.
  const lock = new DatabaseSync(process.stateFile);
  lock.exec("BEGIN IMMEDIATE");
  const cut = post(await log.offer(5, 9)).catch((error: unknown) => error);
  await new Promise((resolve) => setTimeout(resolve, 200));
  await process.kill();
  expect(await cut).toBeInstanceOf(Error);
  lock.exec("ROLLBACK");
  lock.close();
  await process.start();
  expect(await post(await log.offer(0, 9))).toEqual({ status: 409, type: "text/x.tlog.size", body: "5\n" });

  // Killed right after its response, it still remembers what it cosigned, even for another tree.
  expect((await post(await log.offer(5, 9))).status).toBe(200);
  await process.kill();
  await process.start();
  expect((await post(await forked.offer(9, 12))).status).toBe(422);
  expect(await post(await log.offer(5, 9))).toMatchObject({ status: 409, body: "9\n" });
  expect((await post(await log.offer(9, 9))).status).toBe(200);
  const seen = await verifyNote(await (await fetch(process.url + path)).text(), [
    log.signer.key,
    parseVerifierKey(process.vkey),
  ]);
  expect(parseCheckpoint(seen.text).size).toBe(9);
  expect(seen.signatures).toHaveLength(2);
  await process.stop();
});
