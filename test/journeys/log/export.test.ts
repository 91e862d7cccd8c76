import { execFile, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import type { RequestListener } from "node:http";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { openLog } from "../../../packages/verifier/src/commands/log-files.ts";
import { formatProof } from "../../../packages/verifier/src/tlog/tlog-proof.ts";
import { inclusionProof } from "../../../packages/verifier/src/tlog/tree.ts";
import { boardSeeder } from "../../support/board/seed.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { eventually } from "../../support/eventually.ts";
import { folderForFile } from "../../support/folder.ts";
import { forFile } from "../../support/for-file.ts";
import { serveHttp } from "../../support/http-server.ts";
import { filesIn, wholeSize } from "../../support/log/exports.ts";
import { followerOf } from "../../support/log/follow-once.ts";
import { witnessSigner } from "../../support/log/note-keys.ts";
import { readProof } from "../../support/log/read-proof.ts";
import { connectOwner } from "../../support/service/database.ts";
import { bareEnvironment } from "../../support/service/environment.ts";
import { startService } from "../../support/service/service.ts";

const COMMAND = fileURLToPath(new URL("../../../scripts/log-export.ts", import.meta.url));

const chain = await forFile(startTestChain());
const service = await forFile(startService({ chain }));
const seeds = await forFile(boardSeeder(service.database));
const work = await folderForFile("log-export-journey-");
const root = join(work, "files");
const env = { ...bareEnvironment(), DATABASE_URL: service.config.databaseUrl };
// It has no types of its own; its file server is `serve-static`.
const express: { static(root: string): (...parts: [...Parameters<RequestListener>, () => void]) => void } =
  createRequire(import.meta.url)("express");
const files = await forFile(
  serveHttp((request, response) => express.static(root)(request, response, () => void response.writeHead(404).end())),
);

const run = (folder: string, more: Readonly<Record<string, string>> = {}) =>
  new Promise<{ readonly code: number; readonly output: string; readonly errors: string }>((resolve) => {
    execFile(process.execPath, [COMMAND, folder], { env: { ...env, ...more } }, (error, output, errors) =>
      resolve({ code: error === null ? 0 : Number(error.code), output, errors }),
    );
  });

const served = async () => (await fetch(`${service.url}/log/checkpoint`)).text();
const servedSize = async () => Number((await served()).split("\n")[1]);
const publishedVkey = async () => ((await (await fetch(`${service.url}/log`)).json()) as { vkey: string }).vkey;

let wallet = 0;
/** Certificates, once they have their places. */
async function logged(count: number): Promise<readonly string[]> {
  const before = await servedSize();
  const ids = await seeds.add(...Array.from({ length: count }, () => ({ wallet: ++wallet, issuedAt: new Date() })));
  await eventually(servedSize, before + count);
  return ids;
}

test("a log is followed from a plain file server as from the service, and a killed export leaves the one before", async () => {
  await eventually(async () => (await fetch(`${service.url}/log/checkpoint`)).status, 200);
  const [id = ""] = await logged(5);
  const size = await servedSize();
  expect(await run(root)).toMatchObject({
    code: 0,
    output: expect.stringContaining(`has ${size} entries, ${size} of`),
  });
  const follow = await followerOf(service.url, work);
  expect(await follow(`${files.url}/log`, "state")).toMatchObject({ code: 0 });

  await logged(300);
  const all = await servedSize();
  // Reading it never ends: the export stands still with one bundle to go.
  const pipe = join(root, "log/tile/entries/000");
  await mkdir(dirname(pipe), { recursive: true });
  execFileSync("mkfifo", [pipe]);
  const killed = spawn(process.execPath, [COMMAND, root], { env, stdio: "ignore" });
  const ended = once(killed, "exit");
  await eventually(() => existsSync(join(root, `log/tile/entries/001.p/${all - 256}`)), true);
  killed.kill("SIGKILL");
  expect(await ended).toEqual([null, "SIGKILL"]);
  await rm(pipe);
  expect(await wholeSize(join(root, "log"), await publishedVkey())).toBe(size);
  expect(await follow(`${files.url}/log`, "state")).toMatchObject({
    code: 0,
    text: expect.stringContaining("0 of them new"),
  });

  expect(await run(root)).toMatchObject({ code: 0, output: expect.stringContaining(`${all - size} of them new`) });
  expect(await readFile(join(root, "log/checkpoint"), "utf8")).toBe(await served());
  for (const [file, bytes] of await filesIn(join(root, "log"))) {
    const answer = await fetch(`${service.url}/log/${file}`);
    expect([file, Buffer.from(await answer.arrayBuffer()).equals(bytes)]).toEqual([file, true]);
  }
  const news = `${all} entries, ${all - size} of them new`;
  expect(await follow(`${files.url}/log`, "state")).toMatchObject({ code: 0, text: expect.stringContaining(news) });
  expect(await follow(`${service.url}/log`, "state")).toMatchObject({ code: 0 });
  expect(await follow(join(root, "log"), "state")).toMatchObject({ code: 0 });

  const proof = await (await fetch(`${service.url}/cert/${id}.tlog-proof`)).text();
  const { index, entry: extra, checkpoint } = readProof(proof);
  const hashes = await inclusionProof(index, all, openLog(join(root, "log")).tiles);
  expect(formatProof({ index, hashes, checkpoint, extra })).toBe(proof);
});

test("an export says what is wrong, and its exit code tells a fork from what cannot be read", async () => {
  expect(await run("")).toMatchObject({ code: 2, errors: expect.stringContaining("Usage:") });
  const away = { DATABASE_URL: "postgres://nobody@127.0.0.1:1/none" };
  const unread = { code: 2, errors: expect.stringContaining("cannot be read") };
  expect(await run(join(work, "none"), away)).toMatchObject(unread);
  expect(await run(root, { LOG_QUORUM: "2" })).toMatchObject({
    code: 2,
    errors: expect.stringContaining("LOG_QUORUM"),
  });
  const owner = await forFile(await connectOwner(service.database));
  await owner.query("INSERT INTO log_witness (generation, vkey) VALUES (1, $1)", [witnessSigner("w", 1).key.vkey]);
  expect(await run(root)).toMatchObject({ code: 2, errors: expect.stringContaining("LOG_WITNESSES is missing") });
  expect(await run(root, { LOG_QUORUM: "0" })).toMatchObject({ code: 0 });
  await writeFile(join(root, "log/checkpoint"), (await served()).replace("\n", "x\n"));
  const forged = { code: 1, errors: expect.stringContaining("log/checkpoint is not one of") };
  expect(await run(root, { LOG_QUORUM: "0" })).toMatchObject(forged);
});
