import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import canonicalize from "canonicalize";
import { describe, expect, test } from "vitest";
import { checkScore } from "../../../../packages/verifier/src/commands/score.ts";
import { InputError } from "../../../../packages/verifier/src/refusal.ts";
import { replayScores } from "../../../../packages/verifier/src/score/replay.ts";
import { score, scoreDocument } from "../../../../packages/verifier/src/score/score.ts";
import { folderForFile, forFile } from "../../../support/for-file.ts";
import { serveHttp } from "../../../support/http-server.ts";
import { runCommand } from "../../../support/packages/run-command.ts";
import { ALL_PASSES, certificate, daysAgo, facts, outcomes, payee, payees, payments, WALLET } from "./facts.ts";

const FACTS = facts(
  {
    payments: payments([daysAgo(0), 20, 2_000_000], [daysAgo(7), 20, 2_000_000], [daysAgo(14), 20, 2_000_000]),
    payees: [...payees(6), payee(7, { returned: "25000" })],
    escrow: outcomes([1, 1]),
  },
  ALL_PASSES,
);

const document = await scoreDocument(FACTS);
const folder = await folderForFile("score-replay-");
const failed = await scoreDocument(facts({}, [...ALL_PASSES, certificate("scam", { result: "fail" })]));
const files = {
  "score.json": document,
  "batch.json": [document, failed],
  "raised.json": { ...document, score: 100, tier: "A" },
  "one-of-two.json": [document, { ...failed, score: 90 }],
  "other-facts.json": { ...document, inputs: { ...FACTS, certificates: [] } },
  "no-facts.json": { ...score(FACTS), inputs_sha256: document.inputs_sha256 },
};
for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), JSON.stringify(content));
const server = await forFile(serveHttp((_, response) => response.end(JSON.stringify(document)), "localhost"));

const { records } = JSON.parse(await readFile(new URL("../../../vectors/scores.json", import.meta.url), "utf8")) as {
  records: readonly { readonly tier: string; readonly score: number }[];
};
test.each(records.map((record) => [record.tier, record.score, record] as const))(
  "The published record of tier %s with %i points replays byte for byte",
  async (_tier, _score, record) => {
    const replayed = await replayScores(JSON.stringify(record));
    expect(replayed).toEqual([{ same: true, differences: [], computed: record }]);
    expect(JSON.stringify(replayed[0]?.computed)).toBe(JSON.stringify(record));
  },
);

describe("a score document", () => {
  test("It contains its facts, their hash, and the score", () => {
    const { inputs, inputs_sha256, ...rest } = document;
    expect(rest).toEqual(score(FACTS));
    expect(inputs_sha256).toBe(
      createHash("sha256")
        .update(String(canonicalize(inputs)))
        .digest("hex"),
    );
  });

  test("A replay gives the same document for any notation of its JSON", async () => {
    const backwards = Object.fromEntries(Object.entries(document).toReversed());
    for (const source of [
      JSON.stringify(document),
      JSON.stringify(backwards, null, 2),
      Buffer.from(JSON.stringify(document)),
    ])
      expect(await replayScores(source)).toEqual([{ same: true, differences: [], computed: document }]);
  });

  const replayed = async (changed: unknown) => {
    const [replay] = await replayScores(JSON.stringify(changed));
    return replay?.differences;
  };

  test("A replay names any one changed member", async () => {
    expect(await replayed({ ...document, score: 100 })).toEqual([
      { path: "score", stated: 100, computed: document.score },
    ]);
    expect(await replayed({ ...document, note: "trust me" })).toEqual([
      { path: "note", stated: "trust me", computed: undefined },
    ]);
    const { payments: component, ...others } = document.components;
    expect(await replayed({ ...document, components: { ...others, payments: { ...component, points: 6 } } })).toEqual([
      { path: "components.payments.points", stated: 6, computed: 4 },
    ]);
    for (const name of Object.keys(document).filter((name) => !["inputs", "score_version"].includes(name)))
      expect((await replayed({ ...document, [name]: null }))?.map(({ path }) => path)).toEqual([name]);
  });

  test("A replay names a member that every object inherits", async () => {
    const text = JSON.stringify(document).replace("{", '{"__proto__":{},');
    expect(await replayScores(text)).toMatchObject([{ same: false, differences: [{ path: "__proto__", stated: {} }] }]);
  });

  test("A replay names facts in another order, because their hash differs", async () => {
    const mixed = { ...document.inputs, certificates: document.inputs.certificates.toReversed() };
    expect((await replayed({ ...document, inputs: mixed }))?.[0]?.path).toBe("inputs.certificates[0]");
  });

  test("A replay names a changed fact by the facts' hash", async () => {
    const changed = { ...document.inputs, chain: { ...document.inputs.chain, largest_funder: WALLET } };
    expect((await replayed({ ...document, inputs: changed }))?.map(({ path }) => path)).toEqual(["inputs_sha256"]);
  });

  test.each(["{", "[]", "1", "{}", "null", "[[]]", '[{"inputs":1}]'])("The text %s is not a score document", (source) =>
    expect(replayScores(source)).rejects.toThrow(InputError),
  );

  test("Another version, a duplicate member, and malformed facts are refused", async () => {
    const refused = (text: string, reason: string) =>
      expect(replayScores(text)).rejects.toThrow(new InputError(reason));
    await refused(JSON.stringify({ ...document, score_version: 2 }), "score_version is 2; expected 1.");
    await expect(replayScores(JSON.stringify(document).replace("{", '{"score":100,'))).rejects.toThrow(
      /duplicate member/,
    );
    const inputs = { ...FACTS, wallet: "\u001b[2J" };
    const reason = String.raw`inputs.wallet is "\u001b[2J"; expected a lowercase address`;
    await refused(JSON.stringify({ ...document, inputs }), reason);
  });

  test("A refused document in a batch is named by its index", async () =>
    expect(replayScores(JSON.stringify([document, { ...document, inputs: null }]))).rejects.toThrow(
      "[1].inputs is null; expected an object",
    ));
});

/** Runs the command in this process. Its sources are in the folder of the files above. */
const run = (...args: readonly string[]) =>
  runCommand(() =>
    checkScore(args.map((arg) => (arg.endsWith(".json") && !arg.includes("/") ? join(folder, arg) : arg))),
  );

describe("the command", () => {
  const same = () =>
    `same: the facts give ${WALLET} ${document.score}, tier B, on ${document.as_of} at block 40000000\n`;

  test("It exits with 0 for a record that its facts give, from a file, a URL, or a batch", async () => {
    const file = await run("score.json");
    expect(file.code).toBe(0);
    expect(file.text.startsWith(same())).toBe(true);
    expect(file.text).toContain("\n   30 of 30  payment_capability\n");
    expect(file.text).toContain(`\n  inputs_sha256  ${document.inputs_sha256}\n`);
    expect(await run(`${server.url}/score.json`)).toEqual(file);
    const batch = await run("batch.json");
    expect(batch).toMatchObject({ code: 0, text: expect.stringMatching(/^same: [\s\S]*\nsame: .* 25, tier F/) });
  });

  test("It exits with 1 for another record and prints where it differs", async () => {
    const raised = await run("raised.json");
    expect(raised.code).toBe(1);
    expect(raised.text).toMatch(/^DIFFERS: /);
    expect(raised.text).toContain(
      `  "score": the record has 100, its facts give ${document.score}\n  "tier": the record has "A"`,
    );
    expect(await run("one-of-two.json")).toMatchObject({
      code: 1,
      text: expect.stringMatching(/^same: [\s\S]*\nDIFFERS: /),
    });
    expect((await run("other-facts.json")).text).toMatch(/\n {2}and \d+ more differences\n$/);
  });

  test("With --json it prints a machine-readable report", async () => {
    const { code, text } = await run("raised.json", "--json");
    expect(code).toBe(1);
    expect(JSON.parse(text)).toEqual([
      {
        same: false,
        wallet: WALLET,
        score: document.score,
        tier: "B",
        inputs_sha256: document.inputs_sha256,
        differences: [
          { path: "score", stated: 100, computed: document.score },
          { path: "tier", stated: "A", computed: "B" },
        ],
      },
    ]);
  });

  test.each([
    ["no source", [], /score <file \| URL \| ->/],
    ["a record without facts", ["no-facts.json"], /inputs is missing/],
  ])("It exits with 2 for %s", async (_, args, message) =>
    expect(await run(...args)).toEqual({ code: 2, text: expect.stringMatching(message) }),
  );
});
