import { spawnSync } from "node:child_process";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { checkLog } from "../../../../packages/verifier/src/commands/log.ts";
import { jcs } from "../../../../packages/verifier/src/jcs.ts";
import { documentSha256 } from "../../../../packages/verifier/src/tlog/entry.ts";
import { folderForFile } from "../../../support/for-file.ts";
import type { FolderLog } from "../../../support/log/memory-log.ts";
import { saidBy } from "../../../support/packages/said-by.ts";
import { ISSUER, KEY, STRANGER } from "../samples.ts";
import { entry, logOf, RECORD, sign, signer, usual, witness } from "./signed-log.ts";

const CLI = fileURLToPath(new URL("../../../../packages/verifier/src/cli.ts", import.meta.url));
const folder = await folderForFile("log-command-");
await writeFile(join(folder, "jwks.json"), JSON.stringify({ keys: [KEY.publicJwk] }));
await writeFile(join(folder, "policy.txt"), `log ${signer.key.vkey}\nwitness w ${witness.key.vkey}\nquorum w\n`);

/** The arguments that are paths; they mean files of the folder. */
const placed = (args: readonly string[]) =>
  args.map((arg) => (/^(record|jwks|policy|state|files|old)\b/.test(arg) ? join(folder, arg) : arg));

/** The command in this process, which saves the start of another for each. */
async function run(...args: string[]): Promise<{ code: number; text: string }> {
  return saidBy(() => checkLog([...placed(args), "--policy", join(folder, "policy.txt")]));
}

describe("a record with its proof", () => {
  const check = async (proof: string, record: object) => {
    await writeFile(join(folder, "record.json"), JSON.stringify(record));
    await writeFile(join(folder, "record.tlog-proof"), proof);
    return run("record.json", "--proof", "record.tlog-proof", "--jwks", "jwks.json", "--issuer", ISSUER);
  };

  test("is valid where the entry is its own: index, signer and witnesses are named", async () => {
    const { code, text } = await check(await logOf(6).proof(2), { ...RECORD, settlement: { final: true } });
    expect(text).toMatch(/valid: the certificate c1 is entry 2 of the log trust\.example\/log/);
    expect(text).toMatch(/signed\s+by did:web:trust\.example\n.*6 entries\n.*w on 2026-/);
    expect(code).toBe(0);
    const all = ["record.json", "--proof", "record.tlog-proof", "--jwks", "jwks.json", "--policy", "policy.txt"];
    const { stdout, status } = spawnSync(process.execPath, [CLI, "log", ...all], { cwd: folder, encoding: "utf8" });
    expect([stdout, status]).toEqual([text, 0]);
  });

  test("is valid as a contest's record, whose answer is in the log, whole or by its digest", async () => {
    const answer = sign({ type: "EscrowContest", decision: "refund" });
    const { document: _, ...rest } = JSON.parse(String(entry(2, { type: "contest_answer", id: "0x1" })));
    const digest = {
      ...rest,
      sha256: documentSha256(answer as never),
      url: "https://trust.example/escrow/contest/0x1",
    };
    for (const logged of [entry(2, { type: "contest_answer", id: "0x1" }, answer), Buffer.from(jcs(digest))]) {
      const proof = await logOf(6, { 2: logged }).proof(2);
      for (const record of [answer, { payment_id: "0x1", status: "over", answer }])
        expect(await check(proof, record)).toMatchObject({ code: 0 });
      const forged = { payment_id: "0x1", answer: { ...answer, decision: "release" } };
      expect(await check(proof, forged)).toMatchObject({ code: 1, text: expect.stringMatching(/entry_mismatch/) });
    }
  });

  test("is named by its id, which says nothing of its own on a terminal", async () => {
    const answer = sign({ type: "EscrowContest" });
    const logged = entry(2, { type: "contest_answer", id: "v\u001b[2J\nvalid: \u202e\u2028" }, answer);
    const { code, text } = await check(await logOf(6, { 2: logged }).proof(2), answer);
    expect([code, text.split("\n").length, /[^\n\x20-\x7e]/.test(text)]).toEqual([0, 6, false]);
    expect(text).toContain("valid: the contest_answer v\\u001b[2J\\nvalid: \\u202e\\u2028 is entry 2");
  });

  test.each<[string, () => Promise<string>, object, RegExp]>([
    ["says something else", () => logOf(6).proof(2), { ...RECORD, verdict: "fail" }, /differ in verdict/],
    ["has another id", () => logOf(6).proof(2), { ...RECORD, id: "c2" }, /it is about "c1"/],
    ["is another document than the logged one", () => logOf(6).proof(3), RECORD, /another one/],
    ["is logged under another index", () => logOf(6, { 2: entry(1) }).proof(2), RECORD, /names the index 1/],
    [
      "is signed by a stranger",
      () => logOf(6, { 2: entry(2, {}, sign(RECORD, STRANGER)) }).proof(2),
      RECORD,
      /unknown_key/,
    ],
    [
      "is logged as a type that nobody knows",
      () => logOf(6, { 2: entry(2, { type: "draft" }) }).proof(2),
      RECORD,
      /malformed_entry.*its type is "draft", which this verifier does not know/,
    ],
    ["is in no canonical form", () => logOf(6, { 2: Buffer.from(`${usual(2)} `) }).proof(2), RECORD, /canonical form/],
    [
      "has a proof for another entry",
      async () => (await logOf(6).proof(2)).replace(/index 2/, "index 1"),
      RECORD,
      /inclusion_mismatch/,
    ],
    [
      "has a proof without a witness",
      async () => (await logOf(6).proof(2)).replace(/\u2014 witness.*\n/, ""),
      RECORD,
      /quorum_not_met/,
    ],
  ])("is not valid where it %s", async (...[, proof, record, reason]) => {
    const { code, text } = await check(await proof(), record);
    expect(text).toMatch(reason);
    expect(code).toBe(1);
  });
});

describe("following a log", () => {
  const monitor = async (log: FolderLog, damage: (at: string) => Promise<void> = async () => undefined) => {
    const at = join(folder, "files");
    await rm(at, { recursive: true, force: true });
    await log.write(at);
    await damage(at);
    return run("monitor", "files", "--state", "state.json", "--once", "--jwks", "jwks.json", "--issuer", ISSUER);
  };
  const beginAt = async (size: number) => {
    await rm(join(folder, "state.json"), { force: true });
    expect(await monitor(logOf(size))).toMatchObject({ code: 0 });
  };

  test("it goes on where it stopped, over the border of a tile, and back to an older checkpoint", async () => {
    await beginAt(5);
    expect(await monitor(logOf(257))).toEqual({
      code: 0,
      text: "ok: trust.example/log has 257 entries, 252 of them new\n",
    });
    expect((await monitor(logOf(600))).text).toMatch(/600 entries, 343 of them new/);
    expect((await monitor(logOf(600))).text).toMatch(/0 of them new/);
    // A cache may give the checkpoint of before, beside the tiles of now.
    const older = await logOf(257).checkpoint();
    expect(await monitor(logOf(600), (at) => writeFile(join(at, "checkpoint"), older))).toMatchObject({ code: 0 });
    expect((await run("consistency", "files/checkpoint", "--old", "old", "--tiles", "files")).code).toBe(2);
    await writeFile(join(folder, "old"), older);
    await writeFile(join(folder, "files/checkpoint"), await logOf(600).checkpoint());
    expect(await run("consistency", "files/checkpoint", "--old", "old", "--tiles", "files")).toEqual({
      code: 0,
      text: "consistent: trust.example/log grew from 257 to 600 entries\n",
    });
    await writeFile(join(folder, "old"), await logOf(257, { 9: entry(9, { id: "c9" }) }).checkpoint());
    expect(await run("consistency", "files/checkpoint", "--old", "old", "--tiles", "files")).toMatchObject({
      code: 1,
      text: expect.stringMatching(/another root at size 257/),
    });
  });

  const other = { 1: entry(1, { id: "other" }) };
  test.each<[string, FolderLog, RegExp]>([
    ["a fork that is longer", logOf(9, other), /FORK: .*another root at size 5/],
    ["a fork of the same size", logOf(5, other), /FORK: .*two trees of 5 entries/],
    ["a fork that is shorter", logOf(3, other), /FORK: /],
    ["a wrong index", logOf(7, { 6: entry(5) }), /entry 6: it names the index 5/],
    ["a form that nobody knows", logOf(7, { 6: entry(6, { version: 2 }) }), /entry 6: .*its version is 2.*updated/],
    ["a type that is no name", logOf(7, { 6: entry(6, { type: "Gift\n" }) }), /entry 6: .*its type is/],
    [
      "a stranger's entry of a newer type",
      logOf(7, { 6: entry(6, { type: "gift" }, sign(RECORD, STRANGER)) }),
      /unknown_key.*entry 6/,
    ],
    ["a newer type under a wrong index", logOf(7, { 6: entry(5, { type: "gift" }) }), /entry 6: it names the index 5/],
    ["a stranger's signature", logOf(7, { 6: entry(6, {}, sign(RECORD, STRANGER)) }), /unknown_key.*entry 6/],
    ["a changed document", logOf(7, { 6: entry(6, {}, { ...sign(RECORD), id: "x" }) }), /jws_mismatch.*entry 6/],
  ])("%s ends it with exit code 1, and the state stays as it was", async (_, log, reason) => {
    await beginAt(5);
    const before = await readFile(join(folder, "state.json"), "utf8");
    const { code, text } = await monitor(log);
    expect(text).toMatch(reason);
    expect(code).toBe(1);
    expect(await readFile(join(folder, "state.json"), "utf8")).toBe(before);
  });

  test("an entry of a newer type is named and checked like any other, and ends it only where that is asked for", async () => {
    await beginAt(5);
    const newer = logOf(600, { 6: entry(6, { type: "gift" }), 300: entry(300, { type: "gift_2", id: "g" }) });
    const warned = vi.spyOn(console, "error").mockReturnValue();
    onTestFinished(() => warned.mockRestore());
    await writeFile(join(folder, "state-2.json"), await readFile(join(folder, "state.json")));
    expect(await monitor(newer)).toEqual({ code: 0, text: "ok: trust.example/log has 600 entries, 595 of them new\n" });
    expect(warned.mock.calls).toEqual([
      [expect.stringMatching(/^warning: .*entry 6 \("gift"\), 300 \("gift_2"\)\. Update/)],
    ]);
    expect((await monitor(newer)).code).toBe(0);
    const trust = ["--once", "--jwks", "jwks.json", "--issuer", ISSUER];
    const strict = await run("monitor", "files", "--state", "state-2.json", "--strict", ...trust);
    expect(strict).toMatchObject({ code: 1, text: expect.stringMatching(/malformed_entry.*entry 6.*does not know/) });
    expect(await readFile(join(folder, "state-2.json"), "utf8")).toContain('"size":5');
    // What was followed is bound like anything else.
    const other = logOf(601, { 6: entry(6, { type: "gift", id: "other" }) });
    expect(await monitor(other)).toMatchObject({ code: 1, text: expect.stringMatching(/FORK/) });
  });

  test("an entry that is served otherwise than it was logged is named", async () => {
    await beginAt(5);
    const lying = (index: number) => (at: string) =>
      logOf(8, { [index]: entry(index, { id: "lie" }) })
        .write(join(folder, "lie"))
        .then(async () =>
          writeFile(join(at, "tile/entries/000.p/8"), await readFile(join(folder, "lie/tile/entries/000.p/8"))),
        );
    expect(await monitor(logOf(8), lying(2))).toMatchObject({
      code: 1,
      text: expect.stringMatching(/entry 2 was rewritten/),
    });
    expect(await monitor(logOf(8), lying(6))).toMatchObject({
      code: 1,
      text: expect.stringMatching(/entry 6 is not the one whose hash is in the tree/),
    });
  });

  test("what cannot be read is no fork: exit code 2", async () => {
    await beginAt(5);
    const missing = await monitor(logOf(8), (at) => rm(join(at, "tile/entries"), { recursive: true }));
    expect(missing).toMatchObject({ code: 2, text: expect.stringMatching(/tile\/entries\/000\.p\/8 is not there/) });
    await beginAt(5);
    const whole = await readFile(join(folder, "state.json"), "utf8");
    const root = JSON.parse(whole).root as string;
    for (const state of [
      "",
      "{}",
      whole.slice(0, whole.length / 2),
      whole.replace('"size":5', '"size":4'),
      whole.replace('"size":5', '"size":-5'),
      whole.replace('"size":5', '"size":5.5'),
      whole.replace('"size":5', '"size":9007199254740992'),
      whole.replace(`"root":"${root}`, `"root":"${root.slice(4)}`),
      whole.replace(`"root":"${root}`, `"root":"AAAA${root.slice(4)}`),
      whole.replace(/"edge":\["..../, '"edge":["AAAA'),
      whole.replace(/"edge":\[[^\]]*\]/, '"edge":[]'),
    ]) {
      await writeFile(join(folder, "state.json"), state);
      const { code, text } = await monitor(logOf(8));
      expect([code, text], state).toEqual([2, expect.stringMatching(/not the state of a monitor/)]);
    }
  });
});
