import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { NETWORKS } from "../../../api/platform/networks.ts";
import { NETWORKS_V2 } from "../../../packages/verifier/src/verdict/v2/offer-breach.ts";
import {
  BASE,
  DEAR,
  ESCALATED,
  evidenceOn,
  paidBy,
  REFUNDED,
  RELEASED,
  showDocument,
  TX,
  told,
} from "../../support/arbiter/breach.ts";
import { factsNamed, judged, startSite } from "../../support/arbiter/site.ts";

const site = await startSite();
afterAll(() => site.close());
beforeEach(() => showDocument(site));

/** Until the offer and the receipt are the seller's, no transaction is read. */
const UNREAD = ["settlement unknown not_read", "time unknown not_read"];

test.each(REFUNDED)("a breach that is shown is refunded: %s", async (_, given, lines) => {
  const evidence = await evidenceOn(site, await given());
  expect(told(evidence)).toEqual(["refund", ...lines]);
  expect(evidence.transfer).toMatchObject({ network: BASE.id, transaction: TX, logIndex: 7 });
});

test.each(RELEASED)("a payment as offered is released: %s", async (_, given) => {
  const evidence = await evidenceOn(site, await given());
  expect([evidence.verdict, ...judged(evidence).filter((line) => !/ true /.test(line))]).toEqual(["release"]);
  expect(evidence.transfer).toMatchObject({ network: BASE.id, transaction: TX, logIndex: 7 });
});

describe("everything else escalates, and decides no transfer", () => {
  test.each(ESCALATED)("%s", async (_, given, lines) => {
    const evidence = await evidenceOn(site, await given());
    const unread = factsNamed(evidence, "transaction").length === 0 ? UNREAD : [];
    expect(told(evidence)).toEqual(["escalate", ...lines, ...unread]);
    expect(evidence.transfer).toBeUndefined();
  });

  test("a transfer that another verdict has decided, which is named", async () => {
    const { transfer } = await evidenceOn(site, { chain: { [BASE.id]: paidBy(DEAR) } });
    const verdict = "0123456789abcdef0123456789abcdef";
    const again = transfer?.decidedBefore(verdict);
    expect(again && told(again)).toEqual(["escalate", "settlement unknown decided_before"]);
    expect(again?.transfer).toBeUndefined();
    expect(again && factsNamed(again, "decided_before")).toEqual([{ fact: "decided_before", verdict }]);
  });
});

test("the networks of version 2 are the service's", () => {
  const known = Object.values(NETWORKS).map(({ id, isTest }) => [id, { isTest }]);
  expect(NETWORKS_V2).toEqual(Object.fromEntries(known));
});
