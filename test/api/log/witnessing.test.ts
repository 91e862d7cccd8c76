import type { RequestListener } from "node:http";
import { describe, expect, test } from "vitest";
import { createLogCheckpoints } from "../../../api/log/checkpoints-store.ts";
import { createKnownHeads, witnessSources } from "../../../api/log/witness/ask-witnesses.ts";
import { createWitnessCalls } from "../../../api/log/witness/calls-web.ts";
import { createOffer } from "../../../api/log/witness/offer-checkpoint.ts";
import { createWitnessStore, readWitnessed } from "../../../api/log/witness/store.ts";
import type { Witness } from "../../../api/platform/config/log-settings.ts";
import { connect } from "../../../api/platform/db/connection.ts";
import { cosign, type NoteSigner, parseNote, verifyNote } from "../../../packages/verifier/src/tlog/note.ts";
import { noteSigner } from "../../../scripts/witness/signer.ts";
import { eventually } from "../../support/eventually.ts";
import { forFile } from "../../support/for-file.ts";
import { logStage } from "../../support/log/stage.ts";
import { localWitness, texts, toyLog } from "../../support/log/witness.ts";

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
