import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { conditionsSha256 } from "../../../api/arbiter/claim.ts";
import { checkVerdict } from "../../../packages/verifier/src/commands/verdict.ts";
import { replayVerdict } from "../../../packages/verifier/src/index.ts";
import {
  BASE,
  type Case,
  conditionsOf,
  DEAR,
  ESCALATED,
  evidenceOn,
  paidBy,
  REFUNDED,
  RELEASED,
  showDocument,
} from "../../support/arbiter/breach.ts";
import { startSite } from "../../support/arbiter/site.ts";
import { folderForFile } from "../../support/for-file.ts";
import { runCommand } from "../../support/packages/run-command.ts";

const site = await startSite();
afterAll(() => site.close());
beforeEach(() => showDocument(site));

/** The members of a verdict from which it is decided again. */
async function verdictOn(given: Case) {
  const conditions = await conditionsOf(given);
  const { verdict, facts } = await evidenceOn(site, { receipt: null, ...given, ...conditions });
  return {
    type: "ArbiterVerdict",
    category: "offer-breach",
    policy_version: 2,
    conditions_sha256: conditionsSha256("offer-breach", conditions),
    verdict,
    facts: facts as readonly Record<string, unknown>[],
  };
}

type Verdict = Awaited<ReturnType<typeof verdictOn>>;

const ROWS = [...REFUNDED, ...RELEASED, ...ESCALATED].map(([title, given]) => [title, given] as const);

test.each(ROWS)("Every verdict follows from its own evidence: %s", async (_, given) => {
  const document = await verdictOn(await given());
  expect(await replayVerdict(JSON.stringify(document))).toMatchObject({
    same: true,
    differences: [],
    computed: document.verdict,
  });
});

describe("a verdict that its evidence does not support", () => {
  const dear = () => verdictOn({ chain: { [BASE.id]: paidBy(DEAR) } });
  /** The verdict with one named fact changed. */
  const withFact = (document: Verdict, name: string, changes: object): Verdict => ({
    ...document,
    facts: document.facts.map((fact) => (fact.fact === name ? { ...fact, ...changes } : fact)),
  });

  test.each<[string, (document: Verdict) => object, RegExp]>([
    [
      "with another verdict",
      (one) => ({ ...one, verdict: "release" }),
      /verdict is release, the evidence gives refund/,
    ],
    ["with another amount", (one) => withFact(one, "transfer", { value: "250000" }), /evidence gives release/],
    [
      "with another claimant",
      (one) => withFact(one, "offer_breach_claim", { claimant: BASE.usdc.address }),
      /escalate/,
    ],
    ["with an invalid signature", (one) => withFact(one, "offer_breach_claim", { receipt: one.facts[0]?.offer }), /./],
    [
      "with a transaction that is not final",
      (one) => withFact(one, "transaction", { outcome: "not_final" }),
      /evidence gives escalate/,
    ],
    ["with other conditions", (one) => ({ ...one, conditions_sha256: "00".repeat(32) }), /the claim's is/],
    [
      "with a hidden condition",
      (one) => ({ ...one, facts: one.facts.filter(({ condition }) => condition !== "time") }),
      /"time" is missing/,
    ],
  ])("A verdict %s is detected", async (_, change, reason) => {
    const text = JSON.stringify(change(await dear()));
    const found = await replayVerdict(text).then(
      ({ same, differences }) => [same, differences.join("\n")],
      (error: Error) => [false, error.message],
    );
    expect(found).toEqual([false, expect.stringMatching(reason)]);
  });

  test.each<[string, object, RegExp]>([
    ["another category", { category: "ci-status" }, /only offer-breach by version 2/],
    ["another version", { policy_version: 1 }, /only offer-breach by version 2/],
    ["another document", { type: "VerifiableCredential" }, /not a verdict/],
    ["no claim", { facts: [] }, /does not publish its one claim/],
  ])("A verdict of %s cannot be replayed", async (_, members, reason) => {
    await expect(replayVerdict(JSON.stringify({ ...(await dear()), ...members }))).rejects.toThrow(reason);
  });

  test("The command exits with 0 for the same verdict, 1 for another one, and 2 for no such document", async () => {
    const folder = await folderForFile("verifier-verdicts-");
    const document = await dear();
    const run = async (name: string, content: object) => {
      const file = join(folder, name);
      await writeFile(file, JSON.stringify(content));
      return runCommand(() => checkVerdict([file]));
    };
    expect(await run("same", document)).toEqual({
      code: 0,
      text: expect.stringMatching(/^same: the evidence gives refund\n(.*\n)*? +false +amount +more: "250001"/),
    });
    expect(await run("other", { ...document, verdict: "release" })).toEqual({
      code: 1,
      text: expect.stringMatching(/^DIFFERS: the evidence gives refund/),
    });
    expect(await run("no", {})).toEqual({ code: 2, text: expect.stringMatching(/not a verdict/) });
  });
});
