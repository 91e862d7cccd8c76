import { readFile } from "node:fs/promises";
import type { Pool } from "pg";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { createArbiter } from "../../../api/arbiter/arbiter.ts";
import { openCategories } from "../../../api/arbiter/claim.ts";
import type { TransactionReading } from "../../../api/arbiter/evidence.ts";
import { type Category, category, type Observation } from "../../../api/arbiter/policy/category.ts";
import { POLICY_VERSIONS } from "../../../api/arbiter/policy/index.ts";
import type { PolicyVersion, PolicyVersions } from "../../../api/arbiter/policy/version.ts";
import { correctVerdict, type VerdictParts } from "../../../api/arbiter/reach-verdict.ts";
import { requestSchema, type VerdictRequest } from "../../../api/arbiter/request.ts";
import { createVerdictStore, type StoredVerdict } from "../../../api/arbiter/store.ts";
import { createAccount } from "../../../api/platform/chain/accounts.ts";
import { connect } from "../../../api/platform/db/connection.ts";
import type { Sale } from "../../../api/platform/http/route.ts";
import type { CategoryName } from "../../../packages/verifier/src/vocabulary.ts";
import { BASE_URL, SIGNER } from "../../packages/verifier/samples.ts";
import { buyer, conditionsOf, DEAR, NOW, paidBy } from "../../support/arbiter/breach.ts";
import { CLAIMS } from "../../support/arbiter/site.ts";
import { deciderOf, recordVerdict } from "../../support/arbiter/verdicts.ts";
import { PRICES } from "../../support/payments/prices.ts";
import { freshDatabase } from "../../support/service/database.ts";
import { ARBITER_KEY } from "../../support/service/environment.ts";

const [VERSION_1] = POLICY_VERSIONS;

/** The first day of the toy version. */
const TOY_DAY = "2026-11-25";

/** A category that version 1 does not have. */
const EVEN_NUMBER: Category<{ readonly number: number }> = {
  // This name is not among the service's categories.
  name: "even-number" as CategoryName,
  conditions: () => z.strictObject({ number: z.int() }),
  next: () => null,
  judge: ({ number }) => [
    {
      condition: "even",
      expected: 0,
      observed: number % 2,
      result: number % 2 === 0 ? "true" : "false",
      reason: "toy",
    },
  ],
  facts: () => [],
};

/**
 * Version 2, without ci-status and with an additional category. It never escalates and refunds an unknown condition.
 */
const TOY_V2: PolicyVersion = {
  policy: { ...VERSION_1.policy, version: 2, effective_date: TOY_DAY, status: "a toy" },
  categories: [...VERSION_1.categories.filter(({ name }) => name !== "ci-status"), category(EVEN_NUMBER)],
  decide: (results) => (results.every((result) => result === "true") ? "release" : "refund"),
};

const WITH_TOY: PolicyVersions = [VERSION_1, TOY_V2];

/** A verdict of version 1. */
interface Golden {
  readonly id: string;
  readonly claim: { readonly category: string; readonly conditions: object };
  readonly request: VerdictRequest;
  readonly seen: readonly Observation[];
  readonly document: string;
  readonly sha256: string;
}

const VECTORS = new URL("../../vectors/verdicts-v1.json", import.meta.url);
const { issued_at, verdicts } = JSON.parse(await readFile(VECTORS, "utf8")) as {
  issued_at: string;
  verdicts: readonly Golden[];
};
const GOLDEN_NOW = new Date(issued_at);
const BEFORE = new Date(Date.parse(TOY_DAY) - 1);
const FROM = new Date(TOY_DAY);
const signal = new AbortController().signal;
const unasked = async () => Promise.reject(new Error("unexpected call"));

let pool: Pool;
beforeEach(async () => {
  pool = connect((await freshDatabase()).apiUrl, 2);
});
afterEach(() => pool.end());

/**
 * The arbiter's dependencies at this time, with both versions of the policy. The sources replay the recorded
 * observations.
 */
function partsAt(now: Date, seen: readonly Observation[] = []): VerdictParts {
  const left = [...seen];
  const next = async (): Promise<Observation> => left.shift() ?? unasked();
  return {
    fetcher: { attempt: () => next().then((one) => (one.type === "fetch" ? one.fetched : unasked())) },
    checkRuns: {
      read: () => next().then((one) => (one.type === "check-runs" ? one.reading : unasked())),
      suites: unasked,
      statuses: unasked,
    },
    wait: unasked,
    transactions: { read: unasked },
    policies: WITH_TOY,
    store: createVerdictStore(pool),
    signer: SIGNER,
    attestor: createAccount(ARBITER_KEY),
    tiers: { prepare: unasked, ready: unasked, of: unasked },
    baseUrl: BASE_URL,
    now: () => now,
  };
}

const arbiterAt = (now: Date, seen?: readonly Observation[]) => {
  const parts = partsAt(now, seen);
  const arbiter = createArbiter({ ...parts, deals: { parties: async () => null }, ownWallets: [] });
  return { ...arbiter, decide: deciderOf(arbiter, parts.store, pool) };
};

const schemaAt = (now: Date) => requestSchema({ ...CLAIMS, ownWallets: [], policies: WITH_TOY, now: () => now });

let sold = 0;
/** The sale of a request as the journal returns it. */
const saleOf = (request: VerdictRequest): Sale<VerdictRequest> => ({
  input: JSON.parse(JSON.stringify(request)),
  payment: {
    network: "eip155:8453",
    asset: "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913",
    payer: "0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
    nonce: `0x${(++sold).toString(16).padStart(64, "0")}`,
  },
  version: "v2",
  payTo: "0x00000000000000000000000000000000c0ffee01",
  value: PRICES.verdict,
  validAfter: 0n,
  validBefore: 0n,
  receivedAt: BEFORE,
  details: null,
  settlement: { transaction: "0x", block: 1 },
  signal,
});

const goldenOf = (category: string, verdict: string): Golden => {
  const found = verdicts.find(
    ({ claim, document }) => claim.category === category && JSON.parse(document).verdict === verdict,
  );
  if (found === undefined) throw new Error(`no golden ${category} of ${verdict}`);
  return found;
};

/** The outcome of a verdict and the version that decided it. */
const outcomeOf = ({ document }: { readonly document: string }) => {
  const { verdict, policy_version } = JSON.parse(document);
  return { verdict, policy_version };
};

const refusal = (now: Date, claim: unknown) =>
  schemaAt(now)
    .safeParse(claim)
    .error?.issues.map(({ message }) => message);

const EVEN = { category: "even-number", conditions: { number: 4 } };

describe("verdicts of version 1 after version 2 took effect", () => {
  test("Claims submitted under version 1 are stored as the same requests and yield byte-identical documents", async () => {
    for (const { id, claim, request, seen, document, sha256 } of verdicts) {
      const taken = schemaAt(BEFORE).parse(claim);
      expect(taken).toEqual(request);
      const order = { id, request: taken, supersedes: null, isScored: false };
      const stored = await recordVerdict(partsAt(GOLDEN_NOW, seen), order, signal);
      expect([stored.document, stored.sha256]).toEqual([document, sha256]);
      expect(await createVerdictStore(pool).get(id)).toEqual({ ...stored, request });
    }
  });

  test.each(["http-delivery", "ci-status"])(
    "%s: a correction escalates under version 1, where version 2 would refund",
    async (name) => {
      const { id, request, seen } = goldenOf(name, "escalate");
      const order = { id, request, supersedes: null, isScored: false };
      await recordVerdict(partsAt(BEFORE, seen), order, signal);
      const correction = await correctVerdict(partsAt(GOLDEN_NOW, seen), id, "a toy error");
      if (!("verdict" in correction)) throw new Error(`not corrected: ${correction.refused}`);
      expect(outcomeOf(correction.verdict)).toEqual({ verdict: "escalate", policy_version: 1 });
      expect(correction.verdict.supersedes).toBe(id);
      const again = await correctVerdict(partsAt(GOLDEN_NOW, seen), correction.verdict.id, "another one");
      expect("verdict" in again && outcomeOf(again.verdict)).toEqual({ verdict: "escalate", policy_version: 1 });
    },
  );
});

describe("claims across versions", () => {
  const { claim, seen } = goldenOf("http-delivery", "escalate");

  test("A claim accepted under version 1 is decided by it, however late", async () => {
    const sale = saleOf(schemaAt(BEFORE).parse(claim));
    const stored = await arbiterAt(FROM, seen).decide(sale, "plain");
    expect(outcomeOf(stored)).toEqual({ verdict: "escalate", policy_version: 1 });
    expect(stored.request.policyVersion).toBe(1);
  });

  test("A claim in a category that version 2 dropped is decided by version 1, and new ones are rejected", async () => {
    const ci = goldenOf("ci-status", "refund");
    const sale = saleOf(schemaAt(BEFORE).parse(ci.claim));
    expect(outcomeOf(await arbiterAt(FROM, ci.seen).decide(sale, "plain"))).toEqual({
      verdict: "refund",
      policy_version: 1,
    });
    expect(refusal(FROM, ci.claim)).toEqual(["expected one of http-delivery, payload-hash, even-number"]);
  });

  test("A claim falls under version 2 from 0:00 UTC of its first day, and so does the correction of its verdict", async () => {
    const request = schemaAt(FROM).parse(claim);
    expect(request.policyVersion).toBe(2);
    const stored = await arbiterAt(FROM, seen).decide(saleOf(request), "plain");
    expect(outcomeOf(stored)).toEqual({ verdict: "refund", policy_version: 2 });
    const correction = await correctVerdict(partsAt(FROM, seen), stored.id, "a toy error");
    expect("verdict" in correction && outcomeOf(correction.verdict)).toEqual({ verdict: "refund", policy_version: 2 });
  });

  test("A claim in a new category is accepted from that day on", async () => {
    expect(refusal(BEFORE, EVEN)).toEqual(["expected one of http-delivery, payload-hash, ci-status"]);
    const stored = await arbiterAt(FROM).decide(saleOf(schemaAt(FROM).parse(EVEN)), "plain");
    expect(outcomeOf(stored)).toEqual({ verdict: "release", policy_version: 2 });
  });

  test("A claim under a version that this process does not know is left to another process", async () => {
    const sale = saleOf(schemaAt(FROM).parse(EVEN));
    const parts = { ...partsAt(FROM), policies: POLICY_VERSIONS, deals: { parties: unasked }, ownWallets: [] };
    await expect(createArbiter(parts).decide(sale, "plain")).rejects.toThrow(/even-number in policy version 2/);
    expect(outcomeOf(await arbiterAt(FROM).decide(sale, "plain")).policy_version).toBe(2);
  });
});

describe("published policy", () => {
  const versionsAt = (now: Date) => {
    const { policies, policy } = arbiterAt(now);
    return [policies()[0].policy, policy(1), policy(2), policy(3)].map((one) => one?.version ?? null);
  };

  test("The current policy is the version in force, and every version is available by its number", () => {
    expect(versionsAt(BEFORE)).toEqual([1, 1, 2, null]);
    expect(versionsAt(FROM)).toEqual([2, 1, 2, null]);
    expect(versionsAt(new Date(0))).toEqual([1, 1, 2, null]);
  });

  test("The body of a claim offers every category that can be claimed from now on", () => {
    const namesAt = (now: Date) =>
      openCategories({ ...CLAIMS, policies: WITH_TOY, now: () => now }).map(({ name }) => name);
    expect(namesAt(BEFORE)).toEqual(["http-delivery", "payload-hash", "ci-status", "even-number"]);
    expect(namesAt(FROM)).toEqual(["http-delivery", "payload-hash", "even-number"]);
  });
});

describe("one decision per transfer", () => {
  /** The arbiter's dependencies. Every transaction reads as `reading`. */
  const partsWith = (reading: TransactionReading): VerdictParts => ({
    ...partsAt(NOW),
    ...CLAIMS,
    now: () => NOW,
    transactions: { read: async () => reading },
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
    return recordVerdict(parts, order, signal);
  }

  async function corrected(id: string, reading: TransactionReading = paidBy(DEAR)): Promise<StoredVerdict> {
    const correction = await correctVerdict(partsWith(reading), id, "an error of the arbiter");
    if (!("verdict" in correction)) throw new Error(`not corrected: ${correction.refused}`);
    return correction.verdict;
  }

  const before = (verdict: StoredVerdict) =>
    JSON.parse(verdict.document).facts.find(({ fact }: { readonly fact: string }) => fact === "decided_before")
      ?.verdict;
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
});
