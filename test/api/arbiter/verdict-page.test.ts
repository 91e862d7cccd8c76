import { expect, test } from "vitest";
import { renderVerdict } from "../../../api/arbiter/pages/verdict-page.ts";
import type { StoredVerdict } from "../../../api/arbiter/verdict-store.ts";

const verdict = (index: number): StoredVerdict => ({
  id: "a".repeat(32),
  index,
  request: {} as StoredVerdict["request"],
  outcome: "refund",
  issuedAt: new Date(0),
  document: JSON.stringify({
    category: "seller_offline",
    policy_version: 1,
    conditions_sha256: "b".repeat(64),
    issued_at: "2026-11-24T12:00:00.000Z",
    facts: [],
    timeline: [],
  }),
  sha256: "c".repeat(64),
  supersedes: null,
  supersededBy: null,
});

test.each([
  [1, "No. 1, the first"],
  [2, "No. 2, which names the SHA-256 of No. 1"],
  [1_000, "No. 1000, which names the SHA-256 of No. 999"],
])("the page of verdict No. %i says which verdict it names", (index, words) => {
  const page = renderVerdict(verdict(index), [], "https://trust.test");
  expect(page).toMatch(new RegExp(`Chain of verdicts</dt><dd>${words}</dd>`));
});
