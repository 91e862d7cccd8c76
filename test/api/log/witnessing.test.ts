import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import type { RequestListener } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, describe, expect, test } from "vitest";
import { createLogCheckpoints } from "../../../api/log/checkpoints-store.ts";
import { createKnownHeads, witnessSources } from "../../../api/log/witness/ask-witnesses.ts";
import { createWitnessCalls } from "../../../api/log/witness/calls-web.ts";
import { createOffer } from "../../../api/log/witness/offer-checkpoint.ts";
import { createWitnessStore, readWitnessed } from "../../../api/log/witness/store.ts";
import type { Witness } from "../../../api/platform/config/log-settings.ts";
import { connect } from "../../../api/platform/db/connection.ts";
import { formatCheckpoint, parseCheckpoint } from "../../../packages/verifier/src/tlog/checkpoint.ts";
import { cosign, type NoteSigner, parseNote, signNote, verifyNote } from "../../../packages/verifier/src/tlog/note.ts";
import { parseVerifierKey } from "../../../packages/verifier/src/tlog/verifier-key.ts";
import { addCheckpoint, type WitnessParts } from "../../../scripts/witness/add-checkpoint.ts";
import { openRecords } from "../../../scripts/witness/records.ts";
import { readWitnessSettings } from "../../../scripts/witness/settings.ts";
import { noteSigner } from "../../../scripts/witness/signer.ts";
import { eventually } from "../../support/eventually.ts";
import { forFile } from "../../support/for-file.ts";
import { logStage } from "../../support/log/stage.ts";
import { localWitness, offerOf, texts, toyLog, witnessProcess } from "../../support/log/witness.ts";

const seconds = () => Math.floor(Date.now() / 1_000);

/** A log in a database, with all parts that offer it to witnesses and serve it. */
async function scene(entries: number, withinMs?: number) {
  const at = await logStage();
  await at.add(entries);
  await at.integrate();
  const { log, pool, owner } = at;
  const witnesses = createWitnessStore(pool);
  let distrusted = 0;
  const offer = createOffer({
    generation: 1,
    key: log.verifier,
    store: log.store,
    witnesses,
    calls: createWitnessCalls(withinMs),
    distrust: () => void distrusted++,
    now: () => new Date(),
  });
  return {
    ...at,
    witnesses,
    offer,
    distrusted: () => distrusted,
    served: (asked: readonly Witness[], quorum: number, waitMs = 3_600_000) =>
      createLogCheckpoints({ pool, store: log.store, witnesses, policy: { witnesses: asked, quorum, waitMs } }),
    of: async ({ key }: Witness) => (await witnesses.list(1)).find(({ vkey }) => vkey === key.vkey),
    /** Makes everything due that waits, and dates all earlier requests long ago. */
    due: () => owner.query("UPDATE log_witness SET due_at = '-infinity', asked_at = '-infinity'"),
    lines: async () => Number((await owner.query("SELECT count(*) FROM log_cosignature")).rows[0].count),
  };
}

const answering =
  (status: number, body: string, type = "text/plain"): RequestListener =>
  (request, response) => {
    request.resume();
    response.writeHead(request.method === "POST" ? status : 404, { "content-type": type }).end(body);
  };

/** Replaces the response to each POST with a false one. */
const lying =
  (lie: (checkpoint: string, signer: NoteSigner) => Promise<string>) =>
  (signer: NoteSigner): RequestListener =>
  async (request, response) => {
    const chunks = await request.toArray();
    const body = Buffer.concat(chunks).toString();
    const note = body.slice(body.indexOf("\n\n") + 2);
    response.end(request.method === "POST" ? await lie(note, signer) : "");
  };

test("Cosignatures of a quorum are merged into the served checkpoint and follow the log", async () => {
  const at = await scene(3);
  const [one, two] = [await localWitness(at.log.verifier), await localWitness(at.log.verifier)];
  const keys = [at.log.verifier, one.signer.key, two.signer.key];
  const checkpoints = at.served([one.witness, two.witness], 2);
  const shown = async () => {
    const served = await checkpoints.served(1);
    const { signatures } = await verifyNote(served?.note ?? "", keys);
    return [served?.size, signatures.length];
  };
  expect(await shown()).toEqual([3, 1]);
  await Promise.all([at.offer(one.witness), at.offer(two.witness)]);
  expect(await shown()).toEqual([3, 3]);
  await at.add(400);
  await at.integrate();
  // Until both witnesses have the new checkpoint, the last common one is served. A proof of a new entry needs fewer
  // cosignatures.
  await at.offer(one.witness);
  expect(await shown()).toEqual([3, 3]);
  expect((await checkpoints.proving(1, 2))?.size).toBe(3);
  expect((await checkpoints.proving(1, 3))?.size).toBe(403);
  expect(await checkpoints.proving(1, 403)).toBeNull();
  // After its maximum wait, a log continues without its witnesses.
  expect((await at.served([one.witness, two.witness], 2, 0).served(1))?.size).toBe(403);
  await at.offer(two.witness);
  expect(await shown()).toEqual([403, 3]);
  const policy = { witnesses: [one.witness, two.witness], quorum: 2, waitMs: 0 };
  expect((await readWitnessed(at.pool, policy, 1))?.size).toBe(403);
});

test("A dead process loses its turn immediately, and a live one keeps it", async () => {
  const at = await scene(3);
  const { witness } = await localWitness(at.log.verifier);
  const place = { generation: 1, vkey: witness.key.vkey };
  const other = await forFile(connect(at.database.apiUrl));
  const dying = createWitnessStore(other);
  const turn = await dying.takeTurn(place, 3);
  expect(await at.witnesses.takeTurn(place, 3)).toBeNull();
  await at.owner.query(`SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND classid = 7402404
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`);
  const takes = (by: typeof dying) => async () => {
    const taken = await by.takeTurn(place, 3);
    taken?.end();
    return taken !== null;
  };
  await eventually(takes(at.witnesses), true);
  // The first process has lost its connection and continues on another one.
  turn?.end();
  await eventually(takes(dying), true);
});

test("A witness that knows more of the log than the database corrects the database", async () => {
  const at = await scene(5);
  const { witness } = await localWitness(at.log.verifier);
  await at.offer(witness);
  await at.add(4);
  await at.integrate();
  await at.owner.query("UPDATE log_witness SET size = 0");
  await at.offer(witness);
  expect(await at.of(witness)).toMatchObject({ cosigned: { size: 9 }, error: null, failures: 0 });
});

describe("witness without a valid cosignature", async () => {
  const [at, hurried] = [await scene(3), await scene(3, 200)];
  const stranger = await toyLog("stranger.example/log", texts(3));
  const thief = await noteSigner("witness.example/thief", "witness", Buffer.alloc(32, 3));
  const text = (note: string) => parseNote(note).text;
  const liars: Readonly<Record<string, { answer: (signer: NoteSigner) => RequestListener; problem: RegExp }>> = {
    "signs another root": {
      answer: lying(async (note, signer) =>
        cosign(text(note).replace(/\n[^\n]+\n$/, `\n${Buffer.alloc(32, 1).toString("base64")}\n`), signer, seconds()),
      ),
      problem: /does not verify/,
    },
    "signs another log": {
      answer: lying(async (_, signer) => cosign(text(await stranger.checkpointAt(3)), signer, seconds())),
      problem: /does not verify/,
    },
    "signs with another key": {
      answer: lying(async (note) => cosign(text(note), thief, seconds())),
      problem: /none of its signatures/,
    },
    "signs in the future": {
      answer: lying(async (note, signer) => cosign(text(note), signer, seconds() + 3_600)),
      problem: /in the future/,
    },
    "signs without a time": {
      answer: lying(async (note, signer) => cosign(text(note), signer, 0)),
      problem: /has no time/,
    },
    "sends too much": { answer: () => answering(200, "x".repeat(200_000)), problem: /longer than/ },
    "sends nothing": { answer: () => answering(200, ""), problem: /none of its signatures/ },
    "never responds": { answer: () => () => undefined, problem: /no response within/ },
    "breaks down": {
      answer: () => answering(500, "\u001b[31mdown\n"),
      problem: /^it returned status 500: +\[31mdown$/,
    },
    "leads elsewhere": {
      answer: () => (_, response) => response.writeHead(307, { location: "http://127.0.0.1:1/" }).end(),
      problem: /redirect/,
    },
    "has no size": { answer: () => answering(409, "03\n", "text/x.tlog.size"), problem: /without a size/ },
    "has no type": { answer: () => answering(409, "1\n"), problem: /without a size/ },
    "names another size each time": {
      answer: () => answering(409, "1\n", "text/x.tlog.size"),
      problem: /different size each/,
    },
  };
  test.each(Object.entries(liars))(
    "A witness that %s is reported, adds no cosignature, and is retried only after a pause",
    async (name, { answer, problem }) => {
      const on = name === "never responds" ? hurried : at;
      const { witness } = await localWitness(on.log.verifier, answer);
      await on.offer(witness);
      const error = { text: expect.stringMatching(problem) };
      expect(await on.of(witness)).toMatchObject({ cosigned: null, failures: 1, danger: null, error });
      expect([await on.lines(), on.distrusted()]).toEqual([0, 0]);
      // The witness is not contacted again until its pause is over.
      await on.offer(witness);
      expect((await on.of(witness))?.failures).toBe(1);
    },
  );

  test("An unreachable witness does not delay another one", async () => {
    const { witness } = await localWitness(at.log.verifier);
    const down = { ...witness, submission: "http://127.0.0.1:1" };
    await at.offer(down);
    expect((await at.of(down))?.error?.text).toMatch(/ECONNREFUSED|bad port/);
    await at.due();
    await at.offer(witness);
    expect(await at.of(witness)).toMatchObject({ cosigned: { size: 3 }, error: null, failures: 0 });
  });
});

describe("witness that has seen more than the database contains", async () => {
  const at = await scene(3);
  const other = await scene(5);
  const { witness } = await localWitness(at.log.verifier);
  await other.offer(witness);
  const danger = async () => (await at.of(witness))?.danger;

  test("A witness with a larger tree stops the log from signing, and its head is found", async () => {
    await at.offer(witness);
    expect(await danger()).toMatch(/has cosigned 5 entries of this log, which has 3: signing more may fork/);
    expect(at.distrusted()).toBe(1);
    const heads = createKnownHeads(witnessSources([witness], createWitnessCalls()), at.log.verifier);
    const { heads: found, silent } = await heads.ask();
    expect(silent).toEqual([]);
    expect(found).toMatchObject([{ size: 5, root: Uint8Array.from((await other.log.store.newest(1))?.root ?? []) }]);
  });

  test("The witness also rejects the fork once it grows beyond its head", async () => {
    await at.add(9);
    await at.integrate();
    await at.due();
    await at.offer(witness);
    expect(await danger()).toMatch(/rejects this log as a fork|has cosigned 5/);
    expect((await at.of(witness))?.error?.text).toMatch(/rejects 12 entries/);
    expect(at.distrusted()).toBe(2);
  });
});

test("A witness that returns 422 but shows the log's own beginning is itself at fault", async () => {
  const at = await scene(3);
  let isLying = false;
  const { witness } = await localWitness(at.log.verifier, (_, honest) => (request, response) => {
    if (isLying && request.method === "POST") answering(422, "no\n")(request, response);
    else honest(request, response);
  });
  await at.offer(witness);
  isLying = true;
  await at.due();
  await at.offer(witness);
  expect(await at.of(witness)).toMatchObject({
    danger: null,
    error: { text: expect.stringMatching(/a prefix of/) },
  });
  isLying = false;
  await at.due();
  await at.offer(witness);
  expect(await at.of(witness)).toMatchObject({ danger: null, error: null });
});

test("A head counts only with the signatures of log and witness, and silent sources are named", async () => {
  const at = await scene(3);
  const newest = (await at.log.store.newest(1))?.note ?? "";
  const showing =
    (answer: (signer: NoteSigner) => Promise<string>) =>
    (signer: NoteSigner): RequestListener =>
    async (_, response) =>
      void response.end(await answer(signer));
  const sources = await Promise.all([
    localWitness(at.log.verifier),
    localWitness(
      at.log.verifier,
      showing(async () => newest),
    ),
    localWitness(
      at.log.verifier,
      showing(
        async (signer) => `${parseNote(newest).text}\n${await cosign(parseNote(newest).text, signer, seconds())}`,
      ),
    ),
    localWitness(
      at.log.verifier,
      showing(async (signer) => newest + (await cosign(parseNote(newest).text, signer, seconds()))),
    ),
  ]);
  const heads = createKnownHeads(
    witnessSources(
      sources.map(({ witness }) => witness),
      createWitnessCalls(),
    ),
    at.log.verifier,
  );
  const { heads: found, silent } = await heads.ask();
  expect([heads.sources, found.length, silent.length]).toEqual([4, 1, 2]);
  expect(found[0]).toMatchObject({ size: 3, source: `the witness ${sources[3]?.signer.key.name}` });
});

describe("The witness program", async () => {
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
      const empty = await signNote(
        formatCheckpoint({ origin: ORIGIN, size: 0, root: Buffer.alloc(32, 1) }),
        log.signer,
      );
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

    // A witness killed right after it responds still remembers its cosignature, even for another tree.
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
});
