import type { ServerResponse } from "node:http";
import { describe, expect, test } from "vitest";
import { checkLeftOut, type LeftOut } from "../../../../packages/verifier/src/tlog/check-left-out.ts";
import { formatKept, type KeptLogs, parseKept } from "../../../../packages/verifier/src/tlog/kept-log.ts";
import { parsePolicy } from "../../../../packages/verifier/src/tlog/policy.ts";
import { folderForFile } from "../../../support/for-file.ts";
import type { FolderLog } from "../../../support/log/memory-log.ts";
import { ISSUER, KEYS } from "../samples.ts";
import { certificate, entry, listed, logOf, reversal, serveLog, signer, WALLET, witness } from "./signed-log.ts";

const folder = await folderForFile("left-out-");

const LOG = { 0: certificate(0), 1: certificate(1, { verdict: "fail" }), 5: certificate(5, { wallet: "0xother" }) };
const HONEST = [listed(0, "pass"), listed(1, "fail")];

/** A service whose log and record the test changes. */
async function startService(first: FolderLog, certs: readonly object[]) {
  const asked: string[] = [];
  const { url, show } = await serveLog(folder);
  const service = {
    certs,
    answer: (_path: string, _response: ServerResponse): boolean => false,
    show(log: FolderLog) {
      show(log);
      show((path, response) => {
        asked.push(path);
        return service.answer(path, response);
      });
    },
  };
  service.show(first);
  const policyText = `log ${signer.key.vkey} ${url}\nwitness w ${witness.key.vkey}\nquorum w\n`;
  const check = (given: Partial<Parameters<typeof checkLeftOut>[0]> & { kept?: KeptLogs } = {}): Promise<LeftOut> =>
    checkLeftOut({
      wallet: WALLET,
      policy: parsePolicy(policyText),
      expected: { keys: KEYS, issuer: ISSUER },
      baseUrl: url,
      fetchRecord: async () => JSON.stringify({ wallet: WALLET, certs: service.certs }),
      kept: new Map(),
      mostEntries: 10_000,
      timeoutMs: 30_000,
      pause: async () => undefined,
      ...given,
    });
  return Object.assign(service, { url, asked, policyText, check });
}

describe("a record compared with the log of its wallet", () => {
  test.each<[string, readonly object[], object]>([
    ["shows everything", HONEST, { state: "nothing", hidden: [], entries: 10 }],
    ["leaves out a FAIL", [listed(0, "pass")], { state: "hidden", reason: expect.stringMatching(/cert-1.*omitted/) }],
    ["is empty", [], { state: "hidden" }],
    [
      "lists a FAIL as a PASS first",
      [listed(1, "pass"), ...HONEST],
      { state: "hidden", hidden: [expect.stringMatching(/cert-1.*listed 2 times/)] },
    ],
  ])("A record that %s has the expected report", async (_, certs, report) => {
    const service = await startService(logOf(10, LOG), certs);
    expect((await service.check()).report).toMatchObject(report);
  });

  test("A record that reports a wallet with a FAIL as verified is hidden, and the compared record is returned", async () => {
    const service = await startService(logOf(10, LOG), HONEST);
    const answer = (verified: boolean) => JSON.stringify({ wallet: WALLET, verified, certs: HONEST });
    const check = (fetchRecord: () => Promise<string>) => service.check({ fetchRecord });
    expect(await check(async () => answer(false))).toMatchObject({
      report: { state: "nothing" },
      record: answer(false),
    });
    expect((await check(async () => answer(true))).report).toMatchObject({
      ...{ state: "hidden", hidden: [expect.stringMatching(/cert-1.*called verified/)] },
    });
    // One response for the comparison and another one for the reader.
    const faces = [answer(true), answer(false)];
    const twoFaced = await check(async () => faces.shift() ?? answer(true));
    expect(twoFaced).toMatchObject({ report: { state: "nothing" }, record: answer(false) });
  });

  test("It is fetched a second time, so a reversal that the log did not have yet hides nothing", async () => {
    const service = await startService(logOf(10, LOG), [listed(0, "pass")]);
    const pause = async () => {
      service.show(logOf(11, { ...LOG, 10: reversal(10, "cert-1") }));
    };
    expect((await service.check({ pause })).report).toMatchObject({ state: "nothing", entries: 11 });
    const unasked = await service.check({ pause: () => Promise.reject(new Error("no pause is expected")) });
    expect(unasked.report.state).toBe("nothing");
  });

  test("Only new entries of a stored log are read, and the stored ones still bind", async () => {
    const service = await startService(logOf(300, LOG), HONEST);
    const { kept, report } = await service.check();
    expect(report).toMatchObject({ state: "nothing", entries: 300 });
    const again = parseKept(formatKept(kept));
    service.asked.length = 0;
    service.show(logOf(600, { ...LOG, 500: certificate(500, { verdict: "fail" }) }));
    const next = await service.check({ kept: again });
    expect(next.report).toMatchObject({ state: "hidden", entries: 600, hidden: [expect.stringMatching(/cert-500/)] });
    expect(service.asked).not.toContain("tile/entries/000");
    service.show(logOf(700, { ...LOG, 9: certificate(9) }));
    const forked = await service.check({ kept: next.kept });
    expect(forked.report).toMatchObject({ state: "refused", reason: expect.stringMatching(/consistency_mismatch/) });
    expect(forked.kept.get("trust.example/log")?.place.size).toBe(600);
  });

  test("A stored log is read again once the program knows a type that was unknown", async () => {
    const service = await startService(logOf(10, LOG), HONEST);
    const { kept } = await service.check();
    const marked = (entry_type: string) =>
      new Map(
        [...kept].map(([origin, log]) => [
          origin,
          { ...log, notes: [{ type: "unknown", index: 7, id: "g", entry_type }] },
        ]),
      ) as KeptLogs;
    expect((await service.check({ kept: marked("gift") })).report).toMatchObject({ state: "incomplete" });
    service.certs = [];
    expect((await service.check({ kept: marked("certificate") })).report).toMatchObject({ state: "hidden" });
  });

  test("It is compared up to the entry limit, and with the rest the next time", async () => {
    const hiding = { 4000: certificate(4_000, { verdict: "fail" }) };
    const service = await startService(logOf(4_100, { ...LOG, ...hiding }), HONEST);
    const first = await service.check({ mostEntries: 2_100 });
    expect(first.report).toMatchObject({
      ...{ state: "incomplete", entries: 2_304 },
      reason: "The log was read up to entry 2304; it has more, to be read next time.",
    });
    const none = await service.check({ mostEntries: 0, kept: first.kept });
    expect(none.report).toMatchObject({ state: "incomplete", entries: 2_304 });
    const second = await service.check({ mostEntries: 2_100, kept: first.kept });
    expect(second.report).toMatchObject({ state: "hidden", entries: 4_100 });
  });

  test("Hidden certificates are found even if the rest of the log is unreadable, and what was read is stored", async () => {
    const service = await startService(logOf(2_600, LOG), [listed(0, "pass")]);
    service.answer = (path, response) => {
      if (path !== "tile/entries/009") return false;
      response.writeHead(503).end();
      return true;
    };
    const { report, kept } = await service.check();
    expect(report).toMatchObject({ state: "hidden", entries: 2_048 });
    service.certs = HONEST;
    expect((await service.check({ kept })).report).toMatchObject({
      state: "incomplete",
      reason: expect.stringMatching(/^The log was read up to entry 2048: .*status 503/),
    });
  });

  test("It proves nothing for a silent log, an unknown type, another log, or another record", async () => {
    const service = await startService(logOf(10, LOG), HONEST);
    const states = async (given: Parameters<typeof service.check>[0], reason: RegExp) =>
      expect((await service.check(given)).report).toMatchObject({
        ...{ state: "incomplete", reason: expect.stringMatching(reason) },
      });
    const others = parsePolicy(service.policyText.replace(service.url, "https://other.example"));
    await states({ policy: others }, /names no log of http/);
    await states({ fetchRecord: async () => JSON.stringify({ wallet: "0xother", certs: [] }) }, /is about "0xother"/);
    await states({ fetchRecord: async () => "{}" }, /not a verification record or a credential/);
    service.show(logOf(10, { ...LOG, 7: entry(7, { type: "gift" }) }));
    await states({}, /Entry 7 has a type unknown to this version: "gift"/);
    service.answer = () => true;
    await states({ timeoutMs: 300 }, /TimeoutError|timeout|could not be read in 0.3 seconds/);
  });

  test.each(["", "{", "[]", '{"version":1}', '{"version":1,"logs":[{"notes":[]}]}', '{"version":2,"logs":[]}'])(
    "The stored state %j is refused",
    (text) => {
      expect(() => parseKept(text)).toThrow(/remove it to begin at entry 0/);
    },
  );
});
