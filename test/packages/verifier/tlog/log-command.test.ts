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
import { runCommand } from "../../../support/packages/run-command.ts";
import { ISSUER, SAMPLE_NOW, STRANGER } from "../samples.ts";
import { certificate, entry, listed, logOf, RECORD, reversal, sign, trustIn, usual, WALLET } from "./signed-log.ts";

const CLI = fileURLToPath(new URL("../../../../packages/verifier/src/cli.ts", import.meta.url));
const folder = await folderForFile("log-command-");
const trust = await trustIn(folder);

/** The arguments with file names replaced by paths in the folder. */
const placed = (args: readonly string[]) =>
  args.map((arg) => (/^(record|jwks|policy|state|files|old)\b/.test(arg) ? join(folder, arg) : arg));

/** Runs the command in this process, which is faster than a new one. */
async function run(...args: string[]): Promise<{ code: number; text: string }> {
  return runCommand(() => checkLog([...placed(args), "--policy", join(folder, "policy.txt")]));
}

describe("a record with its proof", () => {
  const check = async (proof: string, record: object) => {
    await writeFile(join(folder, "record.json"), JSON.stringify(record));
    await writeFile(join(folder, "record.tlog-proof"), proof);
    return run("record.json", "--proof", "record.tlog-proof", "--jwks", "jwks.json", "--issuer", ISSUER);
  };

  test("It is valid for its own entry, and its index, signer, and witnesses are named", async () => {
    const { code, text } = await check(await logOf(6).proof(2), { ...RECORD, settlement: { final: true } });
    expect(text).toMatch(/valid: the certificate c1 is entry 2 of the log trust\.example\/log/);
    expect(text).toMatch(/signed\s+by did:web:trust\.example\n.*6 entries\n.*w on 2026-/);
    expect(code).toBe(0);
    const all = ["record.json", "--proof", "record.tlog-proof", "--jwks", "jwks.json", "--policy", "policy.txt"];
    const { stdout, status } = spawnSync(process.execPath, [CLI, "log", ...all], { cwd: folder, encoding: "utf8" });
    expect([stdout, status]).toEqual([text, 0]);
  });

  test("A contest's record is valid if its answer is in the log, complete or as a digest", async () => {
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

  test("It is named by its id, whose characters cannot control a terminal", async () => {
    const answer = sign({ type: "EscrowContest" });
    const logged = entry(2, { type: "contest_answer", id: "v\u001b[2J\nvalid: \u202e\u2028" }, answer);
    const { code, text } = await check(await logOf(6, { 2: logged }).proof(2), answer);
    expect([code, text.split("\n").length, /[^\n\x20-\x7e]/.test(text)]).toEqual([0, 6, false]);
    expect(text).toContain("valid: the contest_answer v\\u001b[2J\\nvalid: \\u202e\\u2028 is entry 2");
  });

  test.each<[string, () => Promise<string>, object, RegExp]>([
    ["has another verdict", () => logOf(6).proof(2), { ...RECORD, verdict: "fail" }, /differ in verdict/],
    ["has another id", () => logOf(6).proof(2), { ...RECORD, id: "c2" }, /it is about "c1"/],
    ["is another document than the logged one", () => logOf(6).proof(3), RECORD, /a different one/],
    ["is logged under another index", () => logOf(6, { 2: entry(1) }).proof(2), RECORD, /names the index 1/],
    [
      "is signed by a stranger",
      () => logOf(6, { 2: entry(2, {}, sign(RECORD, STRANGER)) }).proof(2),
      RECORD,
      /unknown_key/,
    ],
    [
      "is logged with an unknown type",
      () => logOf(6, { 2: entry(2, { type: "draft" }) }).proof(2),
      RECORD,
      /malformed_entry.*its type is "draft", which this verifier does not know/,
    ],
    ["is not in canonical form", () => logOf(6, { 2: Buffer.from(`${usual(2)} `) }).proof(2), RECORD, /canonical form/],
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
  ])("It is not valid if it %s", async (...[, proof, record, reason]) => {
    const { code, text } = await check(await proof(), record);
    expect(text).toMatch(reason);
    expect(code).toBe(1);
  });
});

describe("the monitor", () => {
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

  test("It resumes where it stopped, across the border of a tile, and accepts an older checkpoint", async () => {
    await beginAt(5);
    expect(await monitor(logOf(257))).toEqual({
      code: 0,
      text: "ok: trust.example/log has 257 entries, 252 of them new\n",
    });
    expect((await monitor(logOf(600))).text).toMatch(/600 entries, 343 of them new/);
    expect((await monitor(logOf(600))).text).toMatch(/0 of them new/);
    // A cache may return an older checkpoint with newer tiles.
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
      text: expect.stringMatching(/a different root at size 257/),
    });
  });

  const other = { 1: entry(1, { id: "other" }) };
  test.each<[string, FolderLog, RegExp]>([
    ["a longer fork", logOf(9, other), /FORK: .*a different root at size 5/],
    ["a fork of the same size", logOf(5, other), /FORK: .*two trees of 5 entries/],
    ["a shorter fork", logOf(3, other), /FORK: /],
    ["a wrong index", logOf(7, { 6: entry(5) }), /entry 6: the entry names the index 5/],
    ["an unknown version", logOf(7, { 6: entry(6, { version: 2 }) }), /entry 6: .*its version is 2.*update/],
    ["a malformed type", logOf(7, { 6: entry(6, { type: "Gift\n" }) }), /entry 6: .*its type is/],
    [
      "a stranger's entry of a newer type",
      logOf(7, { 6: entry(6, { type: "gift" }, sign(RECORD, STRANGER)) }),
      /unknown_key.*entry 6/,
    ],
    [
      "a newer type under a wrong index",
      logOf(7, { 6: entry(5, { type: "gift" }) }),
      /entry 6: the entry names the index 5/,
    ],
    ["a stranger's signature", logOf(7, { 6: entry(6, {}, sign(RECORD, STRANGER)) }), /unknown_key.*entry 6/],
    ["a changed document", logOf(7, { 6: entry(6, {}, { ...sign(RECORD), id: "x" }) }), /jws_mismatch.*entry 6/],
  ])("With %s it exits with 1 and leaves its state unchanged", async (_, log, reason) => {
    await beginAt(5);
    const before = await readFile(join(folder, "state.json"), "utf8");
    const { code, text } = await monitor(log);
    expect(text).toMatch(reason);
    expect(code).toBe(1);
    expect(await readFile(join(folder, "state.json"), "utf8")).toBe(before);
  });

  test("An entry of a newer type is named and checked, and is an error only with --strict", async () => {
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
    // An entry that was read binds, whatever its type.
    const other = logOf(601, { 6: entry(6, { type: "gift", id: "other" }) });
    expect(await monitor(other)).toMatchObject({ code: 1, text: expect.stringMatching(/FORK/) });
  });

  test("An entry that is served with other content than it was logged with is named", async () => {
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

  test("Unreadable files are not a fork and exit with 2", async () => {
    await beginAt(5);
    const missing = await monitor(logOf(8), (at) => rm(join(at, "tile/entries"), { recursive: true }));
    expect(missing).toMatchObject({ code: 2, text: expect.stringMatching(/tile\/entries\/000\.p\/8 does not exist/) });
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

let made = 0;
const newFile = () => join(folder, `file-${made++}`);

/** Runs the monitor on a folder up to its newest checkpoint. */
async function once(at: string, state: string, ...more: string[]): Promise<{ code: number; text: string }> {
  return runCommand(() => checkLog(["monitor", at, "--state", state, "--once", ...trust, ...more]));
}

describe("the log's entries about a wallet", () => {
  const written = async (size: number, log: typeof LOG = LOG) => {
    const at = newFile();
    await logOf(size, log).write(at);
    return at;
  };
  const LOG: Readonly<Record<number, Buffer>> = {
    0: certificate(0),
    1: certificate(1, { verdict: "fail" }),
    2: certificate(2, { product: "suite", verdict: "fail" }),
    5: certificate(5, { verdict: "fail", valid_until: SAMPLE_NOW.toISOString() }),
    6: certificate(6),
    7: reversal(7, "cert-6"),
    8: certificate(8, { verdict: "fail" }),
    9: reversal(9, "cert-8"),
  };
  const ask = async (certs: readonly object[] | null, more: readonly string[] = [], log = LOG) => {
    const at = await written(10, log);
    const [state, wallets, record] = [newFile(), newFile(), newFile()];
    expect(await once(at, state, "--wallets", wallets)).toMatchObject({ code: 0 });
    await writeFile(record, JSON.stringify({ wallet: WALLET, certs }));
    const printed = vi.spyOn(console, "log").mockReturnValue();
    const given = certs === null ? [] : ["--record", record];
    const code = await checkLog([
      "wallet",
      WALLET.toUpperCase().replace("X", "x"),
      "--state",
      state,
      "--wallets",
      wallets,
      "--json",
      ...given,
      ...more,
    ]);
    const report = JSON.parse(String(printed.mock.calls.at(-1)?.[0])) as {
      hidden: string[];
      unknown: object[];
      certificates: { index: number; reversed: number | null }[];
      size: number;
    };
    printed.mockRestore();
    return { code, report, wallets, state };
  };

  test("All of the wallet's certificates are listed with their reversals", async () => {
    const { code, report } = await ask(null);
    expect(code).toBe(0);
    expect(report.size).toBe(10);
    expect(report.certificates.map(({ index, reversed }) => [index, reversed])).toEqual([
      [0, null],
      [1, null],
      [2, null],
      [5, null],
      [6, 7],
      [8, 9],
    ]);
  });

  test("A record that is not JSON is named as unreadable input", async () => {
    const { state, wallets } = await ask(null);
    const record = newFile();
    await writeFile(record, "{");
    const given = ["wallet", WALLET, "--state", state, "--wallets", wallets, "--record", record];
    expect(await runCommand(() => checkLog(given))).toEqual({
      code: 2,
      text: expect.stringMatching(/is not a verification record or a credential: not JSON/),
    });
  });

  test("Entries of unknown types are named, because they may be about the wallet", async () => {
    const warned = vi.spyOn(console, "error").mockReturnValue();
    const { code, report } = await ask([listed(1, "fail")], [], { ...LOG, 4: entry(4, { type: "gift", id: "g" }) });
    expect(warned.mock.calls).toHaveLength(1);
    warned.mockRestore();
    expect([code, report.unknown]).toEqual([0, [{ index: 4, entry_type: "gift" }]]);
  });

  test.each<[string, readonly object[], readonly RegExp[]]>([
    ["lists all of them", [listed(0, "pass"), listed(1, "fail")], []],
    ["leaves out a PASS and FAILs that do not count, expired, or were reversed", [listed(1, "fail")], []],
    ["leaves out a FAIL", [listed(0, "pass")], [/"retry" "fail", certificate "cert-1", entry 1 is omitted/]],
    ["shows a FAIL as a PASS", [listed(1, "pass")], [/cert-1.*is listed as "pass"/]],
    [
      "counts a reversed certificate",
      [listed(1, "fail"), listed(6, "pass")],
      [/cert-6.*counts in the record, but entry 7 reversed it/],
    ],
  ])("The hidden certificates are reported for a record that %s", async (_, certs, hidden) => {
    const { code, report } = await ask(certs);
    expect(report.hidden).toEqual(hidden.map((reason) => expect.stringMatching(reason)));
    expect(code).toBe(hidden.length === 0 ? 0 : 1);
  });

  test("A FAIL counts until it expires", async () => {
    const before = new Date(SAMPLE_NOW.getTime() - 1).toISOString();
    const { report } = await ask([listed(1, "fail")], ["--at", before]);
    expect(report.hidden).toEqual([expect.stringMatching(/cert-5/)]);
    const { report: after } = await ask([listed(1, "fail")], ["--at", SAMPLE_NOW.toISOString()]);
    expect(after.hidden).toEqual([]);
  });

  test("No character in an entry's id hides the entries after it", async () => {
    const warned = vi.spyOn(console, "error").mockReturnValue();
    const ends = ["\u2028", "\u2029", "\r", "\n", "\u0085", "\u0000", '"', "\\"];
    const odd = Object.fromEntries(ends.map((end, at) => [at + 10, entry(at + 10, { type: "gift", id: `g${end}h` })]));
    const log = {
      ...odd,
      19: certificate(19, { id: "c\u2028", verdict: "pass" }),
      20: certificate(20, { verdict: "fail" }),
    };
    const at = await written(21, log);
    const [state, wallets] = [newFile(), newFile()];
    // In two runs, so that the second one reads the first one's output.
    expect(await once(await written(15, log), state, "--wallets", wallets)).toMatchObject({ code: 0 });
    expect(await once(at, state, "--wallets", wallets)).toMatchObject({ code: 0 });
    warned.mockRestore();
    const { text } = await runCommand(() =>
      checkLog(["wallet", WALLET, "--state", state, "--wallets", wallets, "--json"]),
    );
    const { certificates, unknown } = JSON.parse(text);
    expect(certificates.map(({ index }: { index: number }) => index)).toEqual([19, 20]);
    expect(unknown.map(({ index }: { index: number }) => index)).toEqual(ends.map((_, place) => place + 10));
  });

  test("Notes that were written before their state are not written twice", async () => {
    const at = await written(10);
    const [state, wallets] = [newFile(), newFile()];
    await once(at, state, "--wallets", wallets);
    const whole = await readFile(wallets, "utf8");
    // Simulates a process that was killed between the two files, in the middle of a line.
    const first = await written(5);
    const early = newFile();
    await once(first, early, "--wallets", newFile());
    await writeFile(wallets, whole.slice(0, -9));
    await once(at, early, "--wallets", wallets);
    expect(await readFile(wallets, "utf8")).toBe(whole);
    // Truncated notes would otherwise hide the certificate.
    for (const cut of [0, whole.indexOf("\n") + 1, whole.length - 9, whole.lastIndexOf("\n", whole.length - 2) + 1]) {
      await writeFile(wallets, whole.slice(0, cut));
      const isCut = expect.stringMatching(/truncated or changed since .* Remove it and the state/);
      expect([cut, await once(at, state, "--wallets", wallets)]).toEqual([cut, { code: 2, text: isCut }]);
      await expect(checkLog(["wallet", WALLET, "--state", state, "--wallets", wallets])).rejects.toThrow(
        /was truncated or/,
      );
    }
    await writeFile(wallets, whole);
    const refused = await once(at, state, "--wallets", newFile());
    expect(refused).toMatchObject({ code: 2, text: expect.stringMatching(/remove the state to begin at entry 0/) });
    const unnoted = newFile();
    await once(first, unnoted);
    const between = await once(at, unnoted, "--wallets", newFile());
    expect(between).toMatchObject({ code: 2, text: expect.stringMatching(/monitored up to entry 5 without notes/) });
    await expect(checkLog(["wallet", WALLET, "--state", unnoted, "--wallets", wallets])).rejects.toThrow(
      /without --wallets/,
    );
  });
});
