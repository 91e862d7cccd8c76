import fc from "fast-check";
import { expect, test } from "vitest";
import { policyText } from "../../../api/log/log-overview.ts";
import { parsePolicy } from "../../../packages/verifier/src/tlog/policy.ts";
import { noteSigner, witnessSigner } from "../../support/log/memory-log.ts";

const log = { vkey: noteSigner("trust.example/log", 1).key.vkey, url: "https://trust.example/log" };

// Names that mean something else in a policy, that two witnesses share, and that stand for others.
const NAME = fc.constantFrom(
  ...["none", "all", "any", "1", "#", "#w", "log", "group", "quorum", "enough-witnesses"],
  ...["w", "witness-1", "witness-2", "witness-2-", "witness.example/w", "\u202ew", "w\u0301", "😀"],
);

test("the published policy is read by verifiers as it is meant, whatever witnesses are called", () => {
  const property = fc.property(fc.array(NAME, { maxLength: 5 }), fc.nat({ max: 5 }), (names, most) => {
    const witnesses = names.map((name, place) => ({ name, vkey: witnessSigner(name, place + 2).key.vkey }));
    const quorum = Math.min(most, witnesses.length);
    const policy = parsePolicy(policyText({ log, witnesses, quorum }));
    expect(policy.logs.map(({ key, url }) => [key.vkey, url])).toEqual([[log.vkey, log.url]]);
    if (quorum === 0) {
      expect([policy.quorum, policy.witnesses]).toEqual([null, []]);
      return;
    }
    const keys = policy.witnesses.map(({ key }) => key.vkey);
    expect(keys).toEqual(witnesses.map(({ vkey }) => vkey));
    const rule = policy.quorum ?? { least: 0, members: [] };
    const [least, members] = "witness" in rule ? [1, [rule]] : [rule.least, rule.members];
    expect([least, members.map((one) => "witness" in one && one.witness.vkey)]).toEqual([quorum, keys]);
  });
  fc.assert(property, { numRuns: 300 });
});
