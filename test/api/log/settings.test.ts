import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { policyText } from "../../../api/log/log-overview.ts";
import { parseConfig } from "../../../api/platform/config/config.ts";
import { parsePolicy } from "../../../packages/verifier/src/tlog/policy.ts";
import { noteSigner, witnessSigner } from "../../support/log/memory-log.ts";
import { completeEnvironment } from "../../support/service/environment.ts";

const GOOD = completeEnvironment("A".repeat(43));
const { vkey } = witnessSigner("witness.example/w1", 1).key;
const other = witnessSigner("witness.example/w2", 2).key.vkey;
const renamed = witnessSigner("witness.example/w3", 1).key.vkey;
const URL = "https://witness.example";
const FORM = /^LOG_WITNESSES is wrong: expected a witness's vkey, its URL and/m;

const parse = (settings: Record<string, string>) => parseConfig({ ...GOOD, ...settings });

test.each([
  [
    { LOG_KEY: "A".repeat(42) },
    /^LOG_KEY is wrong: expected the Ed25519 private key that signs the log's checkpoints: 32/m,
  ],
  [{ LOG_GENERATION: "0" }, /^LOG_GENERATION is wrong: expected a whole number from 1 to 1000/m],
  [{ LOG_ORIGIN: "https://trust.example/log" }, /^LOG_ORIGIN is wrong: expected the log's origin, an address without/m],
  [{ LOG_ORIGIN: "trust.example/log\nx" }, /^LOG_ORIGIN is wrong/m],
  [{ LOG_ORIGIN: `${"a".repeat(250)}.example` }, /^LOG_ORIGIN is wrong/m],
  [{ LOG_WITNESSES: `${vkey}` }, FORM],
  [{ LOG_WITNESSES: `${URL} ${vkey}` }, FORM],
  [{ LOG_WITNESSES: `${vkey} ftp://witness.example` }, FORM],
  [{ LOG_WITNESSES: `${vkey} ${URL}?log=1` }, FORM],
  [{ LOG_WITNESSES: `${vkey.replace(/.$/, "~")} ${URL}` }, FORM],
  [
    { LOG_WITNESSES: `${noteSigner("log.example", 1).key.vkey} ${URL}` },
    /is of type 0x01, a log's: a witness's is of type/,
  ],
  [{ LOG_WITNESSES: `${vkey} ${URL},${vkey} ${URL}` }, /^LOG_WITNESSES is wrong: expected each key once/m],
  [{ LOG_WITNESSES: `${vkey} ${URL},${renamed} ${URL}` }, /^LOG_WITNESSES is wrong: expected each key once/m],
  [{ LOG_WITNESSES: many(33) }, /^LOG_WITNESSES is wrong: expected at most 32 witnesses/m],
  [{ LOG_QUORUM: "1" }, /^LOG_QUORUM is wrong: 1 witnesses are required, but LOG_WITNESSES lists 0/m],
  [{ LOG_WITNESSES: `${vkey} ${URL}`, LOG_QUORUM: "2" }, /^LOG_QUORUM is wrong: 2 witnesses are required, but/m],
  [{ LOG_WITNESS_WAIT: "3601" }, /^LOG_WITNESS_WAIT is wrong/m],
  [{ LOG_ANCHOR_SECONDS: "daily" }, /^LOG_ANCHOR_SECONDS is wrong: expected a whole number from 0 to 31536000/m],
])("%j is rejected with a message that describes a valid value", (settings, problem) => {
  expect(parse(settings)).toEqual({ problem: expect.stringMatching(problem) });
});

test.each([
  [{}, { quorum: 0, waitMs: 10_000, origin: null, generation: 1 }],
  [{ LOG_WITNESSES: `${vkey} ${URL}/` }, { quorum: 1 }],
  [{ LOG_WITNESSES: ` ${vkey} ${URL} , ${other} ${URL} ${URL}` }, { quorum: 2 }],
  [{ LOG_WITNESSES: many(32) }, { quorum: 17 }],
  [
    { LOG_WITNESSES: `${vkey} ${URL}`, LOG_QUORUM: "0", LOG_WITNESS_WAIT: "0" },
    { quorum: 0, waitMs: 0 },
  ],
  [
    { LOG_ORIGIN: "localhost:4021/log/2", LOG_GENERATION: "2" },
    { origin: "localhost:4021/log/2", generation: 2 },
  ],
])("%j is accepted", (settings, wanted) => {
  const config = parse(settings);
  if ("problem" in config) throw new Error(config.problem);
  expect({ ...config.log, ...config.log.witnessed }).toMatchObject(wanted);
});

function many(count: number): string {
  const keys = Array.from({ length: count }, (_, place) => witnessSigner(`witness.example/w${place}`, place + 1).key);
  return keys.map((key) => `${key.vkey} ${URL}`).join(",");
}

describe("published policy of the log", () => {
  const log = { vkey: noteSigner("trust.example/log", 1).key.vkey, url: "https://trust.example/log" };

  // Names that are keywords in a policy, are shared by two witnesses, or equal generated names.
  const NAME = fc.constantFrom(
    ...["none", "all", "any", "1", "#", "#w", "log", "group", "quorum", "enough-witnesses"],
    ...["w", "witness-1", "witness-2", "witness-2-", "witness.example/w", "\u202ew", "w\u0301", "😀"],
  );

  test("Verifiers read the published policy as intended, whatever the witnesses are called", () => {
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
});
