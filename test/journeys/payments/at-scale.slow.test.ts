import { beforeAll, describe, expect, test } from "vitest";
import { createProofStore } from "../../../api/certificates/proofs/store.ts";
import { createEscrowStore } from "../../../api/escrow/store.ts";
import { createJournal } from "../../../api/payments/journal/journal-store.ts";
import { createBacklogReader } from "../../../api/payments/journal/upkeep-store.ts";
import { connect } from "../../../api/platform/db/connection.ts";
import { createSeal } from "../../../api/platform/db/seal.ts";
import { createPurchaseStore } from "../../../api/purchases/store.ts";
import { forFile } from "../../support/for-file.ts";
import { fillJournal, keepPayments } from "../../support/payments/journal-rows.ts";
import { connectOwner, freshDatabase, plansOf } from "../../support/service/database.ts";

const SEAL = createSeal(Buffer.alloc(32, 3));
/** More than are counted. */
const STUCK = 5_100;
const COUNTED = 5_000;

const database = await freshDatabase();
const owner = await forFile(connectOwner(database));
const pool = await forFile(connect(database.apiUrl, 4));
const journal = createJournal(pool, SEAL);

const REGULAR = `0x${"00".repeat(20)}` as const;

beforeAll(async () => {
  await fillJournal(owner, { finished: 1_000_000, baits: 100_000, stuck: STUCK });
  const bought = { payer: REGULAR, receivedAt: new Date(), state: "fulfilled" } as const;
  await keepPayments(owner, new Array(3_000).fill(bought));
}, 120_000);

/** Never the whole table: every scan is of an index of what is not over. */
describe("with a million finished payments and 100,000 baits", () => {
  test.each<[string, Parameters<typeof plansOf>[1], readonly string[], number]>([
    [
      "a claim of 128 payments",
      (on) => createJournal(on, SEAL).due(128),
      ["Index Scan payment_todo", "Index Scan payment_parked", "Tid Scan payment"],
      4_000,
    ],
    ["the journal's backlog", (on) => createJournal(on, SEAL).backlog(), ["payment_unresolved"], 400],
    ["the backlog of the metrics", (on) => createBacklogReader(on)(), ["payment_", "escrow_task"], 400],
    [
      "the names for an alert",
      (on) => createJournal(on, SEAL).nameParked(),
      ["payment_parked", "payment_named", "Tid Scan payment"],
      50,
    ],
    ["pruning", (on) => createJournal(on, SEAL).prune(), ["Index Scan payment_over", "Tid Scan payment"], 50],
    ["the proofs to publish", (on) => createProofStore(on, SEAL).due(1n, 100), ["Index Scan payment_kept"], 50],
    [
      "a page of what a regular customer bought",
      (on) => createPurchaseStore(on).page({ payer: REGULAR, network: "eip155:8453", after: null, transaction: null }),
      ["Index Scan payment_purchases"],
      60,
    ],
    ["the escrow's tasks", (on) => createEscrowStore(on).take(16), ["escrow_task"], 50],
  ])("%s reads little", async (...[_, work, scans, pages]) => {
    const plans = await plansOf(database, work);
    expect(plans).toHaveLength(1);
    for (const plan of plans) {
      for (const scan of plan.scans) {
        expect(
          scans.some((allowed) => scan.includes(allowed)),
          scan,
        ).toBe(true);
        expect(scan).not.toBe("Seq Scan payment");
      }
      expect(plan.buffers).toBeLessThan(pages);
    }
  });

  test("payments without progress are set aside at their next look, do not hide a new one, and are named once", async () => {
    expect(await journal.backlog()).toMatchObject({ unresolved: COUNTED });
    const seen = new Set<string>();
    for (let pass = 0; pass < STUCK; pass += 250)
      for (const { key } of await journal.due(250)) {
        expect(seen.has(key.nonce)).toBe(false);
        seen.add(key.nonce);
      }
    expect(seen.size).toBe(STUCK);
    // An hour later all of them are due again, and one more.
    await owner.query("UPDATE payment SET next_attempt_at = now() - interval '1 s' WHERE parked_at IS NOT NULL");
    await owner.query(
      "UPDATE payment SET parked_at = NULL, state_changed_at = now(), next_attempt_at = now() WHERE state = 'settling' AND payer = (SELECT max(payer) FROM payment)",
    );
    const due = await journal.due(128);
    expect(due).toHaveLength(17);
    expect(due.some(({ key }) => Number(key.payer) === 1_100_000 + STUCK)).toBe(true);
    expect(await journal.backlog()).toMatchObject({ unresolved: 1 });
    expect(await createBacklogReader(pool)()).toMatchObject({
      payments: { settling: 1 },
      parkedPayments: COUNTED,
      withheldSignatures: 5_000,
    });

    const named = await Promise.all([journal.nameParked(), journal.nameParked()]);
    expect(named.flat().length).toBeGreaterThanOrEqual(50);
    expect(new Set(named.flat().map(({ nonce }) => nonce)).size).toBe(named.flat().length);
    expect(named.flat()[0]).toMatchObject({ route: "test.basic", state: "settling", failures: 0 });
    expect(await journal.nameParked()).toEqual([]);
    await owner.query("UPDATE payment SET alerted_at = alerted_at - interval '61 min' WHERE alerted_at IS NOT NULL");
    expect(await journal.nameParked()).toHaveLength(50);
  });
});
