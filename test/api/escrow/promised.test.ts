import { expect, test } from "vitest";
import { NO_TRANSACTIONS } from "../../../api/arbiter/evidence.ts";
import { gatherEvidence } from "../../../api/arbiter/gather-evidence.ts";
import { promisedBy } from "../../../api/escrow/contest/conditions.ts";
import { CLAIMS } from "../../support/arbiter/site.ts";

const body = Buffer.from("An old silent pond");
const promised = (status: number, conditions: Record<string, unknown>) => {
  const delivered = {
    contest: null,
    status,
    contentType: "text/plain",
    contentEncoding: null,
    body,
    content: body,
  } as const;
  const read = promisedBy(CLAIMS, conditions, delivered);
  if ("wrong" in read) throw new Error(JSON.stringify(read.wrong));
  return read;
};

test("a delivered response is judged by version 1 of the policy, and a URL by the version in force", () => {
  const { expect: own, httpDelivery } = promised(200, {
    expect: { min_bytes: 1 },
    "http-delivery": { url: "https://shop.example/" },
  });
  expect([own?.claim.policyVersion, httpDelivery?.policyVersion]).toEqual([1, 2]);
});

test.each([202, 405])("a false about a delivered %i is found in one look, without a wait", async (status) => {
  const { expect: own } = promised(status, { expect: { expect_status: status, expect_contains: "frog" } });
  if (own === null) throw new Error("no conditions on the response");
  const unasked = () => Promise.reject(new Error("not asked for"));
  let looks = 0;
  const fetcher = {
    attempt: async () => {
      looks += 1;
      return own.seen;
    },
  };
  const checkRuns = { read: unasked, suites: unasked, statuses: unasked };
  const parts = { ...CLAIMS, fetcher, checkRuns, transactions: NO_TRANSACTIONS, wait: unasked };
  expect((await gatherEvidence(parts, own.claim, new AbortController().signal)).verdict).toBe("refund");
  expect(looks).toBe(1);
});
