import { readFile } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { didWeb } from "../../../../api/platform/signing/did.ts";
import { createSigner, type Unsigned } from "../../../../api/platform/signing/document.ts";
import { monitorLog } from "../../../../packages/verifier/src/commands/log-monitor.ts";
import { jcs } from "../../../../packages/verifier/src/jcs.ts";
import { documentSha256 } from "../../../../packages/verifier/src/tlog/entry.ts";
import { folderForFile } from "../../../support/for-file.ts";
import { respondEndlessly, serveHttp } from "../../../support/http-server.ts";
import { FolderLog, noteSigner } from "../../../support/log/memory-log.ts";
import { runCommand } from "../../../support/packages/run-command.ts";
import { waitUntil } from "../../../support/wait-until.ts";
import { KEY } from "../samples.ts";
import { entry, type Face, logOf, serveLog, sign, signer, trustIn, usual, witness } from "./signed-log.ts";

const folder = await folderForFile("monitor-http-");
const trust = await trustIn(folder);
let made = 0;
const newFile = () => join(folder, `file-${made++}`);

const serve = (...faces: Face[]) => serveLog(folder, ...faces);
const args = (url: string, state: string, ...more: string[]) => [url, "--state", state, ...trust, ...more];

/** Runs the monitor once, up to the newest checkpoint. */
async function once(url: string, state: string, ...more: string[]): Promise<{ code: number; text: string }> {
  return runCommand(() => monitorLog(args(url, state, "--once", ...more)));
}

const changed = (path: string, change: (bytes: Buffer) => Buffer, log: FolderLog): Face => {
  const at = newFile();
  const written = log.write(at);
  return (asked, response) => {
    if (asked !== path) return false;
    void written.then(async () => response.end(change(await readFile(join(at, path)))));
    return true;
  };
};
const instead = (text: string) => () => Buffer.from(text);
const other = { 1: entry(1, { id: "other" }) };
const foreign = new FolderLog(noteSigner("trust.example/log", 9), witness);
foreign.append(...Array.from({ length: 9 }, (_, at) => usual(at)));
const gone: Face = (path, response) => {
  if (!path.startsWith("tile/0/")) return false;
  response.writeHead(404).end();
  return true;
};

describe("a log that is monitored over HTTP", () => {
  test.each<[string, () => Promise<readonly Face[]>, RegExp]>([
    ["has shrunk", async () => [logOf(3), gone], /FORK: the log had 5 entries and has 3/],
    ["has a checkpoint of another key", async () => [foreign], /note_not_signed|note_signature_mismatch/],
  ])("If it %s, its monitor exits with 1 and keeps its state", async (_, faces, reason) => {
    const { url, show } = await serve(logOf(5));
    const state = newFile();
    expect(await once(url, state)).toMatchObject({ code: 0 });
    const before = await readFile(state, "utf8");
    for (const face of await faces()) show(face);
    const { code, text } = await once(url, state);
    expect(text).toMatch(reason);
    expect(code).toBe(1);
    expect(await readFile(state, "utf8")).toBe(before);
  });

  test("A document too large for the log is fetched by its path from the monitored origin, also inside a contest's record", async () => {
    const large = sign({ type: "Large", about: "x".repeat(20_000) });
    const { document: _, ...rest } = JSON.parse(String(entry(5)));
    const { url, show } = await serve();
    const sha256 = documentSha256(large as never);
    const named = (index: number, type: string) =>
      Buffer.from(jcs({ ...rest, index, sha256, type, url: `https://before-it-moved.example/${type}` }));
    let answer: object = large;
    show(logOf(9, { 5: named(5, "evaluation"), 6: named(6, "contest_answer") }));
    show((path, response) => {
      const body = path === "evaluation" ? large : { status: "answered", share: 0.5, answer };
      const isDocument = ["evaluation", "contest_answer"].includes(path);
      if (isDocument) response.end(JSON.stringify(body));
      return isDocument;
    });
    expect(await once(url, newFile())).toMatchObject({
      code: 0,
      text: expect.stringMatching(/9 entries, 9 of them new/),
    });
    answer = sign({ type: "Large", about: "y".repeat(20_000) });
    expect(await once(url, newFile())).toMatchObject({
      code: 1,
      text: expect.stringMatching(/entry 6: .*a different sha256/),
    });
    answer = { ...large, about: "y" };
    expect(await once(url, newFile())).toMatchObject({ code: 1, text: expect.stringMatching(/entry 6: /) });
  });

  test("A copy in a folder lacks such documents, so they are fetched from the issuer if one is configured", async () => {
    let large: object = {};
    const { url, stop } = await serveHttp((_, response) => void response.end(JSON.stringify(large)), "localhost");
    onTestFinished(stop);
    large = await createSigner(KEY, didWeb(url)).sign(
      { "@context": [], issuer: didWeb(url), about: "x" } as Unsigned,
      new Date(0),
    );
    const { document: _, ...rest } = JSON.parse(String(entry(0, { type: "evaluation" })));
    const log = new FolderLog(signer, witness);
    log.append(Buffer.from(jcs({ ...rest, sha256: documentSha256(large as never), url: `${url}/document` })));
    const at = newFile();
    await log.write(at);
    const given = [at, ...trust.slice(0, 4), "--once"];
    expect(await runCommand(() => monitorLog([...given, "--issuer", url]))).toMatchObject({ code: 0 });
    const unnamed = { code: 2, text: expect.stringMatching(/a folder does not include it: add --issuer/) };
    expect(await runCommand(() => monitorLog(given))).toMatchObject(unnamed);
  });

  test.each([
    ["a page", "<!doctype html>\n<html><body>Log in to this network</body></html>\n"],
    ["a page with an empty line", "<!doctype html>\n\n<html></html>\n"],
    ["nothing", ""],
    ["bytes that are not text", "\u0000\u00ff"],
    ["a note that is not a checkpoint", `<html>\n\n\u2014 ${signer.key.name} ${"A".repeat(96)}\n`],
  ])("With %s as its checkpoint, it is unreadable, which is not a fork", async (_, text) => {
    const { url, show } = await serve(logOf(5));
    const state = newFile();
    for (const known of [false, true]) {
      show(changed("checkpoint", instead(text), logOf(5)));
      const outcome = await once(url, state);
      expect([known, outcome.code, outcome.text]).toEqual([
        known,
        2,
        expect.stringMatching(/^the log's address does not serve a checkpoint/),
      ]);
      show(logOf(9));
      expect(await once(url, state)).toMatchObject({ code: 0 });
    }
  });

  test("It is refused if its files agree with each other but not with the signed checkpoint", async () => {
    const signed = changed("checkpoint", (bytes) => bytes, logOf(9));
    const { url } = await serve(logOf(9, other), signed);
    expect(await once(url, newFile())).toMatchObject({
      code: 1,
      text: expect.stringMatching(/inclusion_mismatch.*do not produce the root/),
    });
  });

  test("It is checked in parts, and the check resumes after a part that could not be read", async () => {
    const log = logOf(8_500);
    const { url, show } = await serve(log);
    const state = newFile();
    const asked: string[] = [];
    let isDown = true;
    show((path, response) => {
      if (path !== "tile/entries/033.p/52") asked.push(path);
      if (path !== "tile/entries/033.p/52" || !isDown) return false;
      response.writeHead(429, { "retry-after": "7" }).end();
      return true;
    });
    const files = ["--wallets", newFile()];
    expect(await once(url, state, ...files)).toMatchObject({ code: 2, text: expect.stringMatching(/status 429/) });
    expect(JSON.parse(await readFile(state, "utf8"))).toMatchObject({ size: 8_192 });
    asked.length = 0;
    isDown = false;
    expect(await once(url, state, ...files)).toEqual({
      code: 0,
      text: "ok: trust.example/log has 8500 entries, 308 of them new\n",
    });
    expect(asked).not.toContain("tile/entries/000");
    // The checked part binds as much as a complete log.
    show(logOf(8_600, { 8191: entry(8_191, { id: "other" }) }));
    expect(await once(url, state)).toMatchObject({ code: 1, text: expect.stringMatching(/FORK/) });
  });
});

/** Faulty first responses of a server. */
const FAULTS: Readonly<Record<string, (response: ServerResponse) => void>> = {
  "429": (response) => void response.writeHead(429, { "retry-after": "3" }).end("{}"),
  "503": (response) => void response.writeHead(503).end(),
  silence: () => undefined,
  "half a response": (response) => void response.writeHead(200, { "content-length": "999" }).write("half"),
  "a broken connection": (response) => void response.destroy(),
  "an endless response": respondEndlessly,
};

test("After every kind of faulty response, the monitor retries and reads no more than the size limit of a file", async () => {
  vi.spyOn(console, "log").mockReturnValue();
  const logged = vi.spyOn(console, "error").mockReturnValue();
  onTestFinished(() => void vi.restoreAllMocks());
  const stop = new AbortController();
  const LIMITS: Readonly<Record<string, number>> = {
    checkpoint: 1e6,
    "tile/0/000.p/9": 8_192,
    "tile/entries/000.p/9": 17e6,
  };
  const one = async (path: string, fault: string) => {
    let at = 0;
    let waited = 0;
    let sent: ServerResponse | null = null;
    const { url } = await serve(logOf(9), (asked, response) => {
      if (asked !== path) return false;
      if (at === 0) {
        at = performance.now();
        sent = response;
        FAULTS[fault]?.(response);
        return true;
      }
      waited ||= performance.now() - at;
      return false;
    });
    const state = newFile();
    const running = monitorLog(args(url, state, "--every", "1", "--timeout", "1"), stop.signal);
    const isDone = () =>
      readFile(state, "utf8").then(
        (text) => text.includes('"size":9'),
        () => false,
      );
    await waitUntil(isDone, 60_000, 50);
    // Twice the usual wait, or the server's Retry-After.
    expect([path, fault, waited >= (fault === "429" ? 2_900 : 1_900)]).toEqual([path, fault, true]);
    const bytes = (sent as unknown as ServerResponse).socket?.bytesWritten ?? 0;
    // Bytes in buffers between the two sides are counted as well.
    expect(bytes).toBeLessThan((LIMITS[path] ?? 0) + 20e6);
    return { running };
  };
  const runs = Object.keys(LIMITS).flatMap((path) => Object.keys(FAULTS).map((fault) => one(path, fault)));
  const monitors = await Promise.all(runs);
  expect(logged.mock.calls.length).toBeGreaterThanOrEqual(runs.length);
  stop.abort();
  expect(new Set(await Promise.all(monitors.map(({ running }) => running)))).toEqual(new Set([0]));
}, 120_000);
