import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { checkLog } from "../../../../packages/verifier/src/commands/log.ts";
import { InputError } from "../../../../packages/verifier/src/refusal.ts";
import { folderForFile } from "../../../support/for-file.ts";
import { saidBy } from "../../../support/packages/said-by.ts";
import { ISSUER, KEY, SAMPLE_NOW } from "../samples.ts";
import { entry, logOf, RECORD, sign, signer, witness } from "./signed-log.ts";

const folder = await folderForFile("wallet-log-");
await writeFile(join(folder, "jwks.json"), JSON.stringify({ keys: [KEY.publicJwk] }));
await writeFile(join(folder, "policy.txt"), `log ${signer.key.vkey}\nwitness w ${witness.key.vkey}\nquorum w\n`);
let made = 0;
const newFile = () => join(folder, `file-${made++}`);

/** The monitor on a folder, up to its newest checkpoint. */
async function once(at: string, state: string, ...more: string[]): Promise<{ code: number; text: string }> {
  const trust = ["--policy", join(folder, "policy.txt"), "--jwks", join(folder, "jwks.json"), "--issuer", ISSUER];
  const said = vi.spyOn(console, "log").mockReturnValue();
  try {
    const code = await checkLog(["monitor", at, "--state", state, "--once", ...trust, ...more]);
    return { code, text: said.mock.calls.join("\n") };
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    return { code: 2, text: error.message };
  } finally {
    said.mockRestore();
  }
}

describe("what the log knows of a wallet", () => {
  const written = async (size: number, log: typeof LOG = LOG) => {
    const at = newFile();
    await logOf(size, log).write(at);
    return at;
  };
  const WALLET = `0x${"a1".repeat(20)}`;
  const certificate = (index: number, change: object = {}) => {
    const id = `cert-${index}`;
    const members = { ...RECORD, id, wallet: WALLET, valid_until: "2099-01-01T00:00:00.000Z", ...change };
    return entry(index, { id }, sign({ type: "IssuedCertificate", ...members }));
  };
  const reversal = (index: number, id: string) =>
    entry(index, { type: "reversal", id }, sign({ type: "ReversedCertificate", certificate: id }));
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
  const listed = (at: number, result: string) => ({ id: `cert-${at}`, result, fresh: true });
  const ask = async (certs: readonly object[] | null, more: readonly string[] = [], log = LOG) => {
    const at = await written(10, log);
    const [state, wallets, record] = [newFile(), newFile(), newFile()];
    expect(await once(at, state, "--wallets", wallets)).toMatchObject({ code: 0 });
    await writeFile(record, JSON.stringify({ wallet: WALLET, certs }));
    const said = vi.spyOn(console, "log").mockReturnValue();
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
    const report = JSON.parse(String(said.mock.calls.at(-1)?.[0])) as {
      hidden: string[];
      unknown: object[];
      certificates: { index: number; reversed: number | null }[];
      size: number;
    };
    said.mockRestore();
    return { code, report, wallets, state };
  };

  test("its certificates are all there, with their reversals", async () => {
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

  test("entries of types that the monitor did not know are named: they may be about it", async () => {
    const warned = vi.spyOn(console, "error").mockReturnValue();
    const { code, report } = await ask([listed(1, "fail")], [], { ...LOG, 4: entry(4, { type: "gift", id: "g" }) });
    expect(warned.mock.calls).toHaveLength(1);
    warned.mockRestore();
    expect([code, report.unknown]).toEqual([0, [{ index: 4, entry_type: "gift" }]]);
  });

  test.each<[string, readonly object[], readonly RegExp[]]>([
    ["lists them as they are", [listed(0, "pass"), listed(1, "fail")], []],
    [
      "leaves out a PASS, a FAIL that does not count, one that is over and one that was reversed",
      [listed(1, "fail")],
      [],
    ],
    ["leaves out a FAIL", [listed(0, "pass")], [/"retry" "fail", certificate "cert-1", entry 1 is left out/]],
    ["shows a FAIL as a PASS", [listed(1, "pass")], [/cert-1.*is listed as "pass"/]],
    [
      "counts what was reversed",
      [listed(1, "fail"), listed(6, "pass")],
      [/cert-6.*counts there, and entry 7 reversed it/],
    ],
  ])("a record that %s has hidden: %j %j", async (_, certs, hidden) => {
    const { code, report } = await ask(certs);
    expect(report.hidden).toEqual(hidden.map((reason) => expect.stringMatching(reason)));
    expect(code).toBe(hidden.length === 0 ? 0 : 1);
  });

  test("a FAIL counts until it is over", async () => {
    const before = new Date(SAMPLE_NOW.getTime() - 1).toISOString();
    const { report } = await ask([listed(1, "fail")], ["--at", before]);
    expect(report.hidden).toEqual([expect.stringMatching(/cert-5/)]);
    const { report: after } = await ask([listed(1, "fail")], ["--at", SAMPLE_NOW.toISOString()]);
    expect(after.hidden).toEqual([]);
  });

  test("no character of an entry's id hides what comes after it", async () => {
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
    // In two runs: the second one reads what the first one has written.
    expect(await once(await written(15, log), state, "--wallets", wallets)).toMatchObject({ code: 0 });
    expect(await once(at, state, "--wallets", wallets)).toMatchObject({ code: 0 });
    warned.mockRestore();
    const { text } = await saidBy(() => checkLog(["wallet", WALLET, "--state", state, "--wallets", wallets, "--json"]));
    const { certificates, unknown } = JSON.parse(text);
    expect(certificates.map(({ index }: { index: number }) => index)).toEqual([19, 20]);
    expect(unknown.map(({ index }: { index: number }) => index)).toEqual(ends.map((_, place) => place + 10));
  });

  test("notes that were written before their state are written once", async () => {
    const at = await written(10);
    const [state, wallets] = [newFile(), newFile()];
    await once(at, state, "--wallets", wallets);
    const whole = await readFile(wallets, "utf8");
    // As if the process had been killed between the two files, in the middle of a line.
    const first = await written(5);
    const early = newFile();
    await once(first, early, "--wallets", newFile());
    await writeFile(wallets, whole.slice(0, -9));
    await once(at, early, "--wallets", wallets);
    expect(await readFile(wallets, "utf8")).toBe(whole);
    // Notes that lack anything would hide it.
    for (const cut of [0, whole.indexOf("\n") + 1, whole.length - 9, whole.lastIndexOf("\n", whole.length - 2) + 1]) {
      await writeFile(wallets, whole.slice(0, cut));
      const isCut = expect.stringMatching(/was cut or changed\. Remove it and the state/);
      expect([cut, await once(at, state, "--wallets", wallets)]).toEqual([cut, { code: 2, text: isCut }]);
      await expect(checkLog(["wallet", WALLET, "--state", state, "--wallets", wallets])).rejects.toThrow(/was cut or/);
    }
    await writeFile(wallets, whole);
    const refused = await once(at, state, "--wallets", newFile());
    expect(refused).toMatchObject({ code: 2, text: expect.stringMatching(/remove the state to begin at entry 0/) });
    const unnoted = newFile();
    await once(first, unnoted);
    const between = await once(at, unnoted, "--wallets", newFile());
    expect(between).toMatchObject({ code: 2, text: expect.stringMatching(/followed to entry 5 without notes/) });
    await expect(checkLog(["wallet", WALLET, "--state", unnoted, "--wallets", wallets])).rejects.toThrow(
      /without --wallets/,
    );
  });
});
