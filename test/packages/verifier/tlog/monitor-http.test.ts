import { readFile, writeFile } from "node:fs/promises";
import type { RequestListener, ServerResponse } from "node:http";
import { join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { didWeb } from "../../../../api/platform/signing/did.ts";
import { createSigner, type Unsigned } from "../../../../api/platform/signing/document.ts";
import { monitorLog } from "../../../../packages/verifier/src/commands/log-monitor.ts";
import { jcs } from "../../../../packages/verifier/src/jcs.ts";
import { documentSha256 } from "../../../../packages/verifier/src/tlog/entry.ts";
import { folderForFile } from "../../../support/for-file.ts";

import { serveHttp } from "../../../support/http-server.ts";
import { FolderLog, noteSigner } from "../../../support/log/memory-log.ts";
import { saidBy } from "../../../support/packages/said-by.ts";
import { waitUntil } from "../../../support/wait-until.ts";
import { ISSUER, KEY } from "../samples.ts";
import { entry, logOf, sign, signer, usual, witness } from "./signed-log.ts";

const folder = await folderForFile("monitor-http-");
await writeFile(join(folder, "jwks.json"), JSON.stringify({ keys: [KEY.publicJwk] }));
await writeFile(join(folder, "policy.txt"), `log ${signer.key.vkey}\nwitness w ${witness.key.vkey}\nquorum w\n`);
let made = 0;
const newFile = () => join(folder, `file-${made++}`);

type Face = FolderLog | ((path: string, response: ServerResponse) => boolean);

/** Serves a log, or whatever takes its place; a later face takes the place of those before. */
async function serve(...first: readonly Face[]) {
  const faces = [...first];
  const folders = new Map<FolderLog, string>();
  const answer: RequestListener = async ({ url = "" }, response) => {
    const path = url.slice(1);
    for (const face of faces.toReversed()) {
      if (typeof face === "function") {
        if (face(path, response)) return;
        continue;
      }
      const at = folders.get(face) ?? newFile();
      if (!folders.has(face)) await face.write(at);
      folders.set(face, at);
      return readFile(join(at, path)).then(
        (bytes) => void response.end(bytes),
        () => void response.writeHead(404).end(),
      );
    }
  };
  const { url, stop } = await serveHttp(answer);
  onTestFinished(stop);
  return { url, show: (face: Face) => void faces.push(face) };
}

const args = (url: string, state: string, ...more: string[]) => {
  const trust = ["--policy", join(folder, "policy.txt"), "--jwks", join(folder, "jwks.json"), "--issuer", ISSUER];
  return [url, "--state", state, ...trust, ...more];
};

/** One run to the newest checkpoint. */
async function once(url: string, state: string, ...more: string[]): Promise<{ code: number; text: string }> {
  return saidBy(() => monitorLog(args(url, state, "--once", ...more)));
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

describe("a log that is followed over HTTP", () => {
  test.each<[string, () => Promise<readonly Face[]>, RegExp]>([
    ["has shrunk", async () => [logOf(3), gone], /FORK: the log had 5 entries and has 3/],
    ["has a checkpoint of another key", async () => [foreign], /note_not_signed|note_signature_mismatch/],
  ])("ends its monitor with exit code 1 where it %s; the state stays", async (_, faces, reason) => {
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

  test("a document too large for the log is read at its address, wherever the service was: a contest's record has it as its answer", async () => {
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
      text: expect.stringMatching(/entry 6: .*another sha256/),
    });
    answer = { ...large, about: "y" };
    expect(await once(url, newFile())).toMatchObject({ code: 1, text: expect.stringMatching(/entry 6: /) });
  });

  test("a copy in a folder has no such document: it is read from the issuer, if one is named", async () => {
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
    const trust = ["--policy", join(folder, "policy.txt"), "--jwks", join(folder, "jwks.json"), "--once"];
    expect(await saidBy(() => monitorLog([at, ...trust, "--issuer", url]))).toMatchObject({ code: 0 });
    const unnamed = { code: 2, text: expect.stringMatching(/a folder does not have it: add --issuer/) };
    expect(await saidBy(() => monitorLog([at, ...trust]))).toMatchObject(unnamed);
  });

  test.each([
    ["a page", "<!doctype html>\n<html><body>Log in to this network</body></html>\n"],
    ["a page with an empty line", "<!doctype html>\n\n<html></html>\n"],
    ["nothing", ""],
    ["bytes that are no text", "\u0000\u00ff"],
    ["a note that is no checkpoint", `<html>\n\n\u2014 ${signer.key.name} ${"A".repeat(96)}\n`],
  ])("cannot be read, which is no fork, where %s stands in place of its checkpoint", async (_, text) => {
    const { url, show } = await serve(logOf(5));
    const state = newFile();
    for (const known of [false, true]) {
      show(changed("checkpoint", instead(text), logOf(5)));
      const outcome = await once(url, state);
      expect([known, outcome.code, outcome.text]).toEqual([
        known,
        2,
        expect.stringMatching(/^the log has something else/),
      ]);
      show(logOf(9));
      expect(await once(url, state)).toMatchObject({ code: 0 });
    }
  });

  test("is no log where its files agree with each other, and not with what is signed", async () => {
    const signed = changed("checkpoint", (bytes) => bytes, logOf(9));
    const { url } = await serve(logOf(9, other), signed);
    expect(await once(url, newFile())).toMatchObject({
      code: 1,
      text: expect.stringMatching(/inclusion_mismatch.*do not make the root/),
    });
  });

  test("is checked in parts, and goes on where it stopped when a part cannot be read", async () => {
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
    // The part that was checked binds as the whole does.
    show(logOf(8_600, { 8191: entry(8_191, { id: "other" }) }));
    expect(await once(url, state)).toMatchObject({ code: 1, text: expect.stringMatching(/FORK/) });
  });
});

/** What a server may do in place of its first answer at a path. */
const FAULTS: Readonly<Record<string, (response: ServerResponse) => void>> = {
  "429": (response) => void response.writeHead(429, { "retry-after": "3" }).end("{}"),
  "503": (response) => void response.writeHead(503).end(),
  silence: () => undefined,
  "half an answer": (response) => void response.writeHead(200, { "content-length": "999" }).write("half"),
  "a broken connection": (response) => void response.destroy(),
  "an endless answer": endless,
};

test("whatever a server does in place of an answer, its monitor asks again, and reads no more than a file may have", async () => {
  vi.spyOn(console, "log").mockReturnValue();
  const said = vi.spyOn(console, "error").mockReturnValue();
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
    // Twice what it waits for usually, or what the server asks for.
    expect([path, fault, waited >= (fault === "429" ? 2_900 : 1_900)]).toEqual([path, fault, true]);
    const bytes = (sent as unknown as ServerResponse).socket?.bytesWritten ?? 0;
    // What stands in buffers between the two comes on top.
    expect(bytes).toBeLessThan((LIMITS[path] ?? 0) + 20e6);
    return { running };
  };
  const runs = Object.keys(LIMITS).flatMap((path) => Object.keys(FAULTS).map((fault) => one(path, fault)));
  const monitors = await Promise.all(runs);
  expect(said.mock.calls.length).toBeGreaterThanOrEqual(runs.length);
  stop.abort();
  expect(new Set(await Promise.all(monitors.map(({ running }) => running)))).toEqual(new Set([0]));
}, 120_000);

/** Sends as long as somebody listens. */
function endless(response: ServerResponse): void {
  const more = () => {
    while (response.writable && !response.destroyed && response.write("x".repeat(65_536)));
  };
  response.writeHead(200).on("drain", more);
  more();
}
