import { readFile } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { InputError } from "../../../../packages/verifier/src/refusal.ts";
import { SCORE_VERSIONS } from "../../../../packages/verifier/src/score/index.ts";
import { inputsSha256 } from "../../../../packages/verifier/src/score/inputs-sha256.ts";
import { object, whole } from "../../../../packages/verifier/src/score/parsers.ts";
import { replayBy, replayScores } from "../../../../packages/verifier/src/score/replay.ts";
import type { ScoreRecord, ScoreVersion } from "../../../../packages/verifier/src/score/version.ts";

const GOLDEN = new URL("../../../vectors/scores-v1.json", import.meta.url);
const { records } = JSON.parse(await readFile(GOLDEN, "utf8")) as { records: ScoreRecord[] };

interface ToyFacts {
  readonly payments: number;
}
const toyFacts = object<ToyFacts>({ payments: whole(0) });

/** Another version in every way: other facts, one component, a tier of its own. */
const TOY_V2: ScoreVersion = {
  version: 2,
  async compute(given, path) {
    const inputs = toyFacts(given, path);
    const points = Math.min(inputs.payments, 100);
    return {
      wallet: "0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
      score: points,
      tier: points > 50 ? "gold" : "silver",
      score_version: 2,
      as_of: "2027-01-01T00:00:00.000Z",
      as_of_block: 41_000_000,
      components: { payments: { points, max: 100 } },
      inputs_sha256: await inputsSha256(inputs),
      inputs,
    };
  },
};
const BOTH: readonly ScoreVersion[] = [...SCORE_VERSIONS, TOY_V2];
const toyRecord = await TOY_V2.compute({ payments: 60 }, "inputs");

describe("a record of version 1", () => {
  test.each(records.map((record) => [record.tier, record.score, record] as const))(
    "of tier %s with %i points replays unchanged, with version 2 beside it and without",
    async (_tier, _score, record) => {
      const text = JSON.stringify(record);
      const unchanged = [{ same: true, differences: [], computed: record }];
      expect(await replayScores(text)).toEqual(unchanged);
      const replayed = await replayBy(BOTH, text);
      expect(replayed).toEqual(unchanged);
      expect(replayed.map(({ computed }) => JSON.stringify(computed))).toEqual([text]);
    },
  );

  test("is not one of version 2 because it says so", async () => {
    const relabelled = JSON.stringify({ ...records[0], score_version: 2 });
    await expect(replayBy(BOTH, relabelled)).rejects.toThrow(/^inputs has an unknown member "wallet"$/);
  });
});

describe("a record of version 2", () => {
  test("is computed by version 2, also in a batch with version 1", async () => {
    const batch = await replayBy(BOTH, JSON.stringify([records[0], toyRecord, { ...toyRecord, tier: "silver" }]));
    expect(batch.map(({ same, computed }) => [same, computed.score_version])).toEqual([
      [true, 1],
      [true, 2],
      [false, 2],
    ]);
    expect(batch[2]?.differences).toEqual([{ path: "tier", stated: "silver", computed: "gold" }]);
  });

  test("is refused by a verifier of version 1 alone, and a version that nobody knows by both", async () => {
    const refused = (work: Promise<unknown>, reason: string) => expect(work).rejects.toThrow(new InputError(reason));
    await refused(replayScores(JSON.stringify(toyRecord)), "score_version is 2; known is 1.");
    await refused(replayScores(JSON.stringify([records[0], toyRecord])), "[1].score_version is 2; known is 1.");
    const third = JSON.stringify({ ...toyRecord, score_version: 3 });
    await refused(replayBy(BOTH, third), "score_version is 3; known are 1, 2.");
    const { score_version: _, ...unversioned } = records[0] ?? toyRecord;
    await refused(replayBy(BOTH, JSON.stringify(unversioned)), "score_version is nothing; known are 1, 2.");
  });
});
