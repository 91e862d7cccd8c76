import { readFile } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { InputError } from "../../../../packages/verifier/src/refusal.ts";
import { SCORE_VERSIONS } from "../../../../packages/verifier/src/score/index.ts";
import { inputsSha256 } from "../../../../packages/verifier/src/score/inputs-sha256.ts";
import { object, whole } from "../../../../packages/verifier/src/score/parsers.ts";
import { replayBy, replayScores } from "../../../../packages/verifier/src/score/replay.ts";
import type { ScoreRecord, ScoreVersion } from "../../../../packages/verifier/src/score/version.ts";

const golden = async (version: number): Promise<ScoreRecord[]> => {
  const text = await readFile(new URL(`../../../vectors/scores-v${version}.json`, import.meta.url), "utf8");
  return JSON.parse(text).records;
};
const [ofV1, ofV2, ofV3, ofV4] = [await golden(1), await golden(2), await golden(3), await golden(4)];

interface ToyFacts {
  readonly payments: number;
}
const toyFacts = object<ToyFacts>({ payments: whole(0) });

/** Another version in every way: other facts, one component, a tier of its own. */
const TOY_V5: ScoreVersion = {
  version: 5,
  async compute(given, path) {
    const inputs = toyFacts(given, path);
    const points = Math.min(inputs.payments, 100);
    return {
      wallet: "0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
      score: points,
      tier: points > 50 ? "gold" : "silver",
      score_version: 5,
      as_of: "2027-01-01T00:00:00.000Z",
      as_of_block: 41_000_000,
      components: { payments: { points, max: 100 } },
      inputs_sha256: await inputsSha256(inputs),
      inputs,
    };
  },
};
const ALL: readonly ScoreVersion[] = [...SCORE_VERSIONS, TOY_V5];
const toyRecord = await TOY_V5.compute({ payments: 60 }, "inputs");

describe.each([
  [1, ofV1],
  [2, ofV2],
  [3, ofV3],
  [4, ofV4],
] as const)("a record of version %i", (version, records) => {
  test.each(records.map((record) => [record.tier, record.score, record] as const))(
    "of tier %s with %i points replays unchanged, with another version beside it and without",
    async (_tier, _score, record) => {
      expect(record.score_version).toBe(version);
      const text = JSON.stringify(record);
      const unchanged = [{ same: true, differences: [], computed: record }];
      expect(await replayScores(text)).toEqual(unchanged);
      const replayed = await replayBy(ALL, text);
      expect(replayed).toEqual(unchanged);
      expect(replayed.map(({ computed }) => JSON.stringify(computed))).toEqual([text]);
    },
  );

  test.each([
    [1, /^inputs(\.chain|\.chain\.escrow)? has an unknown member "(buyers|lookup|seller_exams)"$/],
    [2, /^inputs(\.chain|\.chain\.escrow)? has an unknown member "(release_payers|lookup|seller_exams)"$/],
    [3, /^inputs(\.chain\.lookup is nothing; expected an object| has an unknown member "seller_exams")$/],
    [4, /^inputs(\.chain\.lookup is nothing; expected an object|\.seller_exams is nothing; expected a list)$/],
    [5, /^inputs has an unknown member "wallet"$/],
  ])("is not one of version %i because it says so", async (other, reason) => {
    const relabelled = replayBy(ALL, JSON.stringify({ ...records[0], score_version: other }));
    if (other === version) expect(await relabelled).toMatchObject([{ same: true }]);
    else await expect(relabelled).rejects.toThrow(reason);
  });
});

describe("a record of another version", () => {
  test("is computed by its own, also in a batch with others", async () => {
    const batch = [ofV1[0], ofV2[0], ofV3[0], ofV4[0], toyRecord, { ...toyRecord, tier: "silver" }];
    const replayed = await replayBy(ALL, JSON.stringify(batch));
    expect(replayed.map(({ same, computed }) => [same, computed.score_version])).toEqual([
      [true, 1],
      [true, 2],
      [true, 3],
      [true, 4],
      [true, 5],
      [false, 5],
    ]);
    expect(replayed[5]?.differences).toEqual([{ path: "tier", stated: "silver", computed: "gold" }]);
  });

  test("is refused by a verifier that does not know it, and a version that nobody knows by all", async () => {
    const refused = (work: Promise<unknown>, reason: string) => expect(work).rejects.toThrow(new InputError(reason));
    await refused(replayScores(JSON.stringify(toyRecord)), "score_version is 5; known are 1, 2, 3, 4.");
    await refused(replayScores(JSON.stringify([ofV1[0], toyRecord])), "[1].score_version is 5; known are 1, 2, 3, 4.");
    const sixth = JSON.stringify({ ...toyRecord, score_version: 6 });
    await refused(replayBy(ALL, sixth), "score_version is 6; known are 1, 2, 3, 4, 5.");
    const { score_version: _, ...unversioned } = ofV1[0] ?? toyRecord;
    await refused(replayBy(ALL, JSON.stringify(unversioned)), "score_version is nothing; known are 1, 2, 3, 4, 5.");
  });
});

test("a FAIL of retry safety caps a score of version 3, and is no fact of earlier versions", async () => {
  const fail = { id: "retry", url: "https://trust.example/cert/retry", product: "retry", result: "fail" };
  const compute = (version: number, records: readonly ScoreRecord[]) => {
    const { inputs } = records[0] as unknown as { inputs: { as_of: string; certificates: object[] } };
    const times = { issued_at: "2020-01-01T00:00:00.000Z", valid_until: "2999-01-01T00:00:00.000Z", reversed_at: null };
    const certificates = [...inputs.certificates, { ...fail, ...times }];
    return SCORE_VERSIONS[version - 1]?.compute(JSON.parse(JSON.stringify({ ...inputs, certificates })), "inputs");
  };
  const caps = expect.arrayContaining([{ cap: "fresh_fail", limit: 25, because: ["fresh_fail_retry_safety"] }]);
  expect(await compute(3, ofV3)).toMatchObject({ tier: "F", caps });
  const refusal = /product is "retry"; expected one of basic, suite, scam, recipient/;
  await expect(compute(1, ofV1)).rejects.toThrow(refusal);
  await expect(compute(2, ofV2)).rejects.toThrow(refusal);
});
