import { mkdir, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { beforeEach, expect, test, vi } from "vitest";
import { type Call, keptIn } from "../../../packages/mcp/src/pending-payments.ts";
import { stateFolder } from "../../../packages/mcp/src/state-folder.ts";
import { newStateFolder } from "../../support/packages/mcp.ts";

/** The folder of payments without an answer, shared by several programs. */

const key = { service: "https://service.example", path: "/test/basic", body: { a: 1, b: 2 }, wallet: "0x0b" };
const rest = { headers: {}, amount: "1", payTo: "x", network: "y", maxTimeoutSeconds: 1 };

let folder: string;

beforeEach(async () => {
  folder = newStateFolder();
  await mkdir(folder, { recursive: true });
});

const files = () => readdir(folder);

/** A call that begins now, or at the given time. */
const from = (began = Date.now(), more: object = {}): Call => ({ key: { ...key, ...more }, began });
const signed = (signedAt: string) => async () => ({ ...rest, headers: { payment: signedAt }, signedAt });

test("A slow signature is awaited and not made twice", async () => {
  const sign = vi.fn(async () => {
    await sleep(60);
    return signed(String(sign.mock.calls.length))();
  });
  const kept = await Promise.all([1, 2].map(() => keptIn(folder).keep(from(), null, sign)));
  expect([kept.map(({ signedAt }) => signedAt), sign.mock.calls.length]).toEqual([["1", "1"], 1]);
});

test("A stale lock is broken, and no payment overwrites another one", async () => {
  const store = keptIn(folder);
  const first = await store.keep(from(), null, signed("first"));
  expect(await store.keep(from(), null, signed("second"))).toEqual(first);
  await store.answered(key, { ...first, headers: { another: "payment" } }, new Date());
  expect(await store.find(from())).toEqual(first);
  expect(await store.find(from(Date.now(), { service: "https://another.example" }))).toBeNull();
  expect(await store.find(from(Date.now(), { body: { b: 2, a: 1 } }))).toEqual(first);
  const [name = ""] = await files();
  const lock = join(folder, `${name}.lock`);
  await writeFile(lock, "");
  const longAgo = new Date(Date.now() - 11_000);
  await utimes(lock, longAgo, longAgo);
  const outrun = await store.keep(from(), first, async () => {
    await rm(lock);
    await keptIn(folder).keep(from(), first, signed("third"));
    return signed("fourth")();
  });
  expect(outrun.signedAt).toBe("third");
  expect(await files()).toEqual([name]);
});

test("Only a payment that can never be charged is replaced, and only once", async () => {
  const first = await keptIn(folder).keep(from(), null, signed("first"));
  const other = await signed("other")();
  expect(await keptIn(folder).keep(from(), other, signed("second"))).toEqual(first);
  const both = await Promise.all(["second", "third"].map((name) => keptIn(folder).keep(from(), first, signed(name))));
  expect(both[0]).toEqual(both[1]);
  expect(both[0]).not.toEqual(first);
});

test("For ten minutes, an answer is shared by the calls that began before it", async () => {
  const store = keptIn(folder);
  const began = Date.now() - 5_000;
  const first = await store.keep(from(began), null, signed("first"));
  await store.answered(key, first, new Date(began + 1));
  expect((await store.keep(from(began), null, signed("second"))).signedAt).toBe("first");
  expect((await store.find(from(began)))?.signedAt).toBe("first");
  expect(await store.find(from(began + 1))).toBeNull();
  const second = await store.keep(from(began + 1), null, signed("second"));
  expect(second.signedAt).toBe("second");
  await store.answered(key, second, new Date(Date.now() - 601_000));
  await store.keep(from(Date.now(), { path: "/test/suite" }), null, signed("third"));
  expect(await files()).toHaveLength(1);
});

test("A lock and an answer from the future block nothing after the clock was set back", async () => {
  const store = keptIn(folder);
  const first = await store.keep(from(), null, signed("first"));
  await store.answered(key, first, new Date(Date.now() + 86_400_000));
  expect(await store.find(from())).toBeNull();
  const [name = ""] = await files();
  const lock = join(folder, `${name}.lock`);
  await writeFile(lock, "");
  const tomorrow = new Date(Date.now() + 86_400_000);
  await utimes(lock, tomorrow, tomorrow);
  expect((await store.keep(from(), null, signed("second"))).signedAt).toBe("second");
  expect(await files()).toEqual([name]);
});

test.each([
  ["zeros, as a power cut leaves them", (text: string) => "\0".repeat(text.length)],
  ["an invalid amount", (text: string) => text.replace('"amount":"1"', '"amount":"1.5"')],
])("With %s in a file that may be a payment, nothing is signed, and the error names the file", async (_, spoil) => {
  const store = keptIn(folder);
  const text = JSON.stringify(await store.keep(from(), null, signed("first")));
  const file = store.fileOf(key);
  await writeFile(file, spoil(text));
  const sign = vi.fn(signed("second"));
  for (const attempt of [() => store.find(from()), () => store.keep(from(), null, sign)]) {
    const error: Error = await attempt().then(
      () => expect.unreachable(),
      (cause) => cause,
    );
    expect(error.message).toMatch(new RegExp(`^${file} may be a payment .*Nothing was signed or sent`));
    // A hint to use another folder would hide the payment.
    expect(error.message).not.toMatch(/XDG_STATE_HOME/);
  }
  expect(sign).not.toHaveBeenCalled();
  expect(await files()).toHaveLength(1);
});

test.each([
  [{ XDG_STATE_HOME: "/var/state" }, "linux", /^\/var\/state\/agent-payment-trust-mcp$/],
  [{ XDG_STATE_HOME: "relative" }, "linux", /\/\.local\/state\/agent-payment-trust-mcp$/],
  [{}, "darwin", /\/\.local\/state\/agent-payment-trust-mcp$/],
  [{ LOCALAPPDATA: "/local" }, "win32", /^\/local\/agent-payment-trust-mcp$/],
] as const)("With the environment %j on %s, the folder is the platform's", (env, platform, folder) => {
  expect(stateFolder(env, platform)).toMatch(folder);
});
