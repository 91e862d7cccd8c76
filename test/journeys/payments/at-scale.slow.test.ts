import { beforeAll, describe, expect, test } from "vitest";
import { createProofStore } from "../../../api/certificates/proofs/store.ts";
import { createEscrowStore } from "../../../api/escrow/store.ts";
import { createJournal } from "../../../api/payments/journal/journal-store.ts";
import { createBacklogReader } from "../../../api/payments/journal/upkeep-store.ts";
import { createSeal } from "../../../api/platform/db/seal.ts";
import { createPurchaseStore } from "../../../api/purchases/store.ts";
import { forFile } from "../../support/for-file.ts";
import { fillJournal, keepPayments } from "../../support/payments/journal-rows.ts";
import { connectOwner, freshDatabase, plansOf } from "../../support/service/database.ts";

const SEAL = createSeal(Buffer.alloc(32, 3));
/** More payments than the backlog counts. */
const STUCK = 5_100;

const database = await freshDatabase();
const owner = await forFile(connectOwner(database));

const REGULAR = `0x${"00".repeat(20)}` as const;

beforeAll(async () => {
  await fillJournal(owner, { finished: 1_000_000, baits: 100_000, stuck: STUCK });
  const bought = { payer: REGULAR, receivedAt: new Date(), state: "fulfilled" } as const;
  await keepPayments(owner, new Array(3_000).fill(bought));
}, 120_000);

/** No query may scan the whole table. Every scan uses an index of unfinished payments. */
describe("one million finished payments and 100,000 baits", () => {
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
      "a page of a regular customer's purchases",
      (on) => createPurchaseStore(on).page({ payer: REGULAR, network: "eip155:8453", after: null, transaction: null }),
      ["Index Scan payment_purchases"],
      60,
    ],
    ["the escrow's tasks", (on) => createEscrowStore(on).take(16), ["escrow_task"], 50],
  ])("The query for %s reads only unfinished payments", async (...[_, work, scans, pages]) => {
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
});
