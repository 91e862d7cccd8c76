import type { Pool } from "pg";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createArbiter } from "../../../api/arbiter/arbiter.ts";
import type { TransactionReading } from "../../../api/arbiter/evidence.ts";
import { correctVerdict, type VerdictParts } from "../../../api/arbiter/reach-verdict.ts";
import { requestSchema } from "../../../api/arbiter/request.ts";
import { createVerdictStore, type StoredVerdict } from "../../../api/arbiter/store.ts";
import { createAccount } from "../../../api/platform/chain/accounts.ts";
import { connect } from "../../../api/platform/db/connection.ts";
import { BASE_URL, SIGNER } from "../../packages/verifier/samples.ts";
import { buyer, conditionsOf, DEAR, NOW, paidBy } from "../../support/arbiter/breach.ts";
import { CLAIMS } from "../../support/arbiter/site.ts";
import { recordVerdict } from "../../support/arbiter/verdicts.ts";
import { freshDatabase } from "../../support/service/database.ts";
import { ARBITER_KEY } from "../../support/service/environment.ts";

let pool: Pool;
beforeEach(async () => {
  pool = connect((await freshDatabase()).apiUrl, 2);
});
afterEach(() => pool.end());

const unasked = async () => Promise.reject(new Error("unexpected call"));

/** The arbiter's dependencies. Every transaction reads as `reading`. */
const partsWith = (reading: TransactionReading): VerdictParts => ({
  ...CLAIMS,
  now: () => NOW,
  fetcher: { attempt: unasked },
  checkRuns: { read: unasked, suites: unasked, statuses: unasked },
  wait: unasked,
  transactions: { read: async () => reading },
  store: createVerdictStore(pool),
  signer: SIGNER,
  attestor: createAccount(ARBITER_KEY),
  tiers: { prepare: unasked, ready: unasked, of: unasked },
  baseUrl: BASE_URL,
});

const idOf = (digit: string) => digit.repeat(32);

/** Claims the buyer's one transfer, recorded under an ID of this digit. */
async function claim(digit: string, reading: TransactionReading = paidBy(DEAR)): Promise<StoredVerdict> {
  const parts = partsWith(reading);
  const arbiter = createArbiter({ ...parts, deals: { parties: async () => null }, ownWallets: [] });
  const schema = requestSchema({ ...CLAIMS, now: () => NOW, ownWallets: [] });
  const submitted = schema.parse({ category: "offer-breach", conditions: await conditionsOf({}) });
  const taken = await arbiter.admit(submitted, { payer: buyer, variant: "plain" });
  if (!("input" in taken)) throw new Error("The claim was not accepted.");
  const order = { id: idOf(digit), request: taken.input, supersedes: null, isScored: false };
  return recordVerdict(parts, order, new AbortController().signal);
}

async function corrected(id: string, reading: TransactionReading = paidBy(DEAR)): Promise<StoredVerdict> {
  const correction = await correctVerdict(partsWith(reading), id, "an error of the arbiter");
  if (!("verdict" in correction)) throw new Error(`not corrected: ${correction.refused}`);
  return correction.verdict;
}

const before = (verdict: StoredVerdict) =>
  JSON.parse(verdict.document).facts.find(({ fact }: { readonly fact: string }) => fact === "decided_before")?.verdict;
const outcomeOf = (verdict: StoredVerdict) => [verdict.outcome, before(verdict) ?? null];

const UNSEEN: TransactionReading = { outcome: "unavailable" };

test("A corrected verdict keeps its transfer through all corrections, and no other verdict gets it", async () => {
  expect(outcomeOf(await claim("a"))).toEqual(["refund", null]);
  const first = await corrected(idOf("a"), UNSEEN);
  expect(outcomeOf(first)).toEqual(["escalate", null]);
  expect(outcomeOf(await corrected(first.id))).toEqual(["refund", null]);
  const late = await claim("b");
  expect(outcomeOf(late)).toEqual(["escalate", idOf("a")]);
  expect(outcomeOf(await corrected(late.id))).toEqual(["escalate", idOf("a")]);
});

test("An escalate leaves the transfer to the next claim, and a later correction does not take it back", async () => {
  expect(outcomeOf(await claim("a", UNSEEN))).toEqual(["escalate", null]);
  expect(outcomeOf(await claim("b"))).toEqual(["refund", null]);
  expect(outcomeOf(await corrected(idOf("a")))).toEqual(["escalate", idOf("b")]);
});

test("The correction of an escalate decides the transfer if no other verdict has", async () => {
  await claim("a", UNSEEN);
  const correction = await corrected(idOf("a"));
  expect(outcomeOf(correction)).toEqual(["refund", null]);
  expect(outcomeOf(await claim("b"))).toEqual(["escalate", correction.id]);
});

test("Recording the same verdict again returns the first document", async () => {
  const first = await claim("a");
  expect((await claim("a")).document).toBe(first.document);
});
