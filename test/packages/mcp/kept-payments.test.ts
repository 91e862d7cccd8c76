import { mkdir, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { beforeEach, expect, test, vi } from "vitest";
import { keptIn } from "../../../packages/mcp/src/pending-payments.ts";
import { stateFolder } from "../../../packages/mcp/src/state-folder.ts";
import { newStateFolder } from "../../support/packages/mcp.ts";

/** The folder where payments without an answer are kept, and many programs at once in it. */

const key = { service: "https://service.example", path: "/test/basic", body: { a: 1, b: 2 }, wallet: "0x0b" };
const rest = { headers: {}, amount: "1", payTo: "x", network: "y", maxTimeoutSeconds: 1 };

let folder: string;

beforeEach(async () => {
  folder = newStateFolder();
  await mkdir(folder, { recursive: true });
});

const files = () => readdir(folder);

test("a slow signature is waited for, not made twice", async () => {
  const sign = vi.fn(async () => {
    await sleep(60);
    const signedAt = String(sign.mock.calls.length);
    return { ...rest, signedAt };
  });
  const kept = await Promise.all([1, 2].map(() => keptIn(folder).keep(key, sign)));
  expect([kept.map(({ signedAt }) => signedAt), sign.mock.calls.length]).toEqual([["1", "1"], 1]);
});

test("a lock whose holder was killed is broken, and no payment is ever written over another", async () => {
  const store = keptIn(folder);
  const first = await store.keep(key, async () => ({ ...rest, signedAt: "first" }));
  expect(await store.keep(key, async () => ({ ...rest, signedAt: "second" }))).toEqual(first);
  await store.forget(key, { ...first, headers: { another: "payment" } });
  expect(await store.find(key)).toEqual(first);
  expect(await store.find({ ...key, service: "https://another.example" })).toBeNull();
  expect(await store.find({ ...key, body: { b: 2, a: 1 } })).toEqual(first);
  const [name = ""] = await files();
  const lock = join(folder, `${name}.lock`);
  await store.forget(key, first);
  await writeFile(lock, "");
  const longAgo = new Date(Date.now() - 11_000);
  await utimes(lock, longAgo, longAgo);
  const outrun = await store.keep(key, async () => {
    await rm(lock);
    await keptIn(folder).keep(key, async () => ({ ...rest, signedAt: "third" }));
    return { ...rest, signedAt: "fourth" };
  });
  expect(outrun.signedAt).toBe("third");
  expect(await files()).toEqual([name]);
});

test.each([
  [{ XDG_STATE_HOME: "/var/state" }, "linux", /^\/var\/state\/agent-payment-trust-mcp$/],
  [{ XDG_STATE_HOME: "relative" }, "linux", /\/\.local\/state\/agent-payment-trust-mcp$/],
  [{}, "darwin", /\/\.local\/state\/agent-payment-trust-mcp$/],
  [{ LOCALAPPDATA: "/local" }, "win32", /^\/local\/agent-payment-trust-mcp$/],
] as const)("the folder with %j on %s", (env, platform, folder) => {
  expect(stateFolder(env, platform)).toMatch(folder);
});
