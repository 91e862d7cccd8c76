import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createLogCheckpoints } from "../../../api/log/checkpoints-store.ts";
import { createLogStore } from "../../../api/log/store.ts";
import { createWitnessStore } from "../../../api/log/witness/store.ts";
import { bytes, connect } from "../../../api/platform/db/connection.ts";
import { forFile } from "../../support/for-file.ts";
import { witnessSigner } from "../../support/log/memory-log.ts";
import { connectOwner, freshDatabase } from "../../support/service/database.ts";

const database = await freshDatabase();
const owner = await forFile(await connectOwner(database));
const HOUR_MS = 3_600_000;
const KEYS = [1, 2].map((seed) => witnessSigner(`witness.example/w${seed}`, seed).key);
/** Includes the key of a witness that was removed from the settings. */
const SIGNERS = [...KEYS, witnessSigner("witness.example/w3", 3).key];
const WITNESSES = KEYS.map((key) => ({ key, submission: "http://127.0.0.1:1", monitoring: "http://127.0.0.1:1" }));

/** Processes of one service whose settings differ while they change. Each has its own connections. */
const PROCESSES = await Promise.all(
  [
    { witnesses: WITNESSES, quorum: 1 },
    { witnesses: WITNESSES, quorum: 2 },
    { witnesses: WITNESSES.slice(1), quorum: 1 },
    { witnesses: [], quorum: 0 },
  ].map(async (policy) => {
    const pool = await forFile(connect(database.apiUrl, 4));
    const parts = { pool, store: createLogStore(pool), witnesses: createWitnessStore(pool) };
    return createLogCheckpoints({ ...parts, policy: { ...policy, waitMs: HOUR_MS } });
  }),
);

const nat = fc.nat({ max: 5 });
const STEP = fc.oneof(
  // A new checkpoint, or one that has waited for hours.
  fc.record({ is: fc.constant("grow" as const), by: fc.integer({ min: 1, max: 3 }), waits: fc.boolean() }),
  fc.record({ is: fc.constant("cosign" as const), witness: fc.constantFrom(0, 1), back: nat }),
  // Simultaneous readers, each of a possibly different process.
  fc.record({ is: fc.constant("read" as const), at: fc.array(fc.nat({ max: 3 }), { minLength: 1, maxLength: 3 }) }),
);

let generation = 0;

/** A new log on the shared database. */
function scene() {
  const own = ++generation;
  const sizes: number[] = [];
  const noteOf = (size: number) => `log ${own} of ${size}\n`;
  return {
    sizes,
    noteOf,
    /** @param hours ago */
    async grow(by: number, hours = 0) {
      const size = (sizes.at(-1) ?? 0) + by;
      sizes.push(size);
      await owner.query(
        `INSERT INTO log_checkpoint (generation, size, root, note, at)
         VALUES ($1, $2, $3, $4, now() - make_interval(hours => $5))`,
        [own, size, Buffer.alloc(32, size), noteOf(size), hours],
      );
    },
    async cosign(witness: number, back: number, seconds = 1) {
      const [key, size] = [SIGNERS[witness], sizes.at(-1 - back)];
      if (key === undefined || size === undefined) return;
      await owner.query(
        `INSERT INTO log_cosignature (generation, size, key_name, key_id, line, timestamp)
         VALUES ($1, $2, $3, $4, 'a line\n', $5) ON CONFLICT DO NOTHING`,
        [own, size, key.name, bytes(key.id), seconds],
      );
    },
    read: (at: readonly number[]) => Promise.all(at.map((process) => PROCESSES[process]?.served(own) ?? null)),
  };
}

test("The served checkpoint never shrinks, whatever the witnesses do and whichever process serves it", async () => {
  const property = fc.asyncProperty(fc.array(STEP, { minLength: 4, maxLength: 24 }), async (steps) => {
    const log = scene();
    let before = 0;
    for (const step of steps) {
      if (step.is === "grow") await log.grow(step.by, step.waits ? 2 : 0);
      else if (step.is === "cosign") await log.cosign(step.witness, step.back);
      else {
        const found = await log.read(step.at);
        for (const one of found) {
          expect(one?.size ?? 0).toBeGreaterThanOrEqual(before);
          if (one !== null) expect(one.note.startsWith(log.noteOf(one.size))).toBe(true);
        }
        before = Math.max(before, ...found.map((one) => one?.size ?? 0));
      }
    }
    await log.grow(1);
    await log.cosign(1, 0);
    expect((await log.read([2]))[0]?.size).toBe(log.sizes.at(-1));
  });
  await fc.assert(property, { numRuns: 60 });
});

test("A quorum counts different witnesses that are in the settings", async () => {
  const log = scene();
  const served = async () => (await log.read([1]))[0]?.size;
  await log.grow(3);
  for (const witness of [0, 1]) await log.cosign(witness, 0);
  expect(await served()).toBe(3);
  await log.grow(4);
  for (const seconds of [1, 2]) await log.cosign(0, 0, seconds);
  expect(await served()).toBe(3);
  await log.cosign(2, 0);
  expect(await served()).toBe(3);
  await log.cosign(1, 0);
  expect(await served()).toBe(7);
});

describe("stored state of a witness", async () => {
  const database = await freshDatabase();
  const store = createWitnessStore(await forFile(connect(database.apiUrl)));

  test("A late response from a witness does not lower its recorded state", async () => {
    const { key } = witnessSigner("witness.example/w", 1);
    const place = { generation: 1, vkey: key.vkey };
    (await store.takeTurn(place, 9))?.end();
    const at = (seconds: number) => [{ keyName: key.name, keyId: key.id, line: "a line\n", seconds }];
    await store.accept(place, 9, at(20));
    await store.accept(place, 3, at(10));
    expect(await store.list(1)).toMatchObject([{ cosigned: { size: 9, at: new Date(20_000) } }]);
  });
});
