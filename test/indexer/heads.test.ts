import { setImmediate } from "node:timers/promises";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { OLDER_MS, READING_MS, steadyHeads } from "../../indexer/heads.ts";

// Ponder's requests to a node whose answers are given here.

const NODE = "http://127.0.0.1:8545";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["performance"] });
});
afterEach(() => {
  vi.useRealTimers();
});

interface Block {
  readonly number: number;
  readonly hash: string;
}

/** A block of one fork. */
const block = (number: number, fork = "a"): Block => ({ number, hash: `${fork}${number}` });

function start() {
  let head: Response = new Response();
  const pending: ((answer: Response) => void)[] = [];
  const ask: typeof fetch = async (request) => {
    const isPoll = (await (request as Request).text()).includes("latest");
    return isPoll ? head : new Promise((done) => pending.push(done));
  };
  const through = steadyHeads(ask, NODE);
  const asked = (method: string, params: unknown, url = NODE) =>
    through(new Request(url, { method: "POST", body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }) }));
  return {
    /** What Ponder sees when the node has this. */
    sees: async (given: Block | Response): Promise<unknown> => {
      const result = given instanceof Response ? null : { ...given, number: `0x${given.number.toString(16)}` };
      head = given instanceof Response ? given : Response.json({ jsonrpc: "2.0", id: 1, result });
      const response = await asked("eth_getBlockByNumber", ["latest", true]);
      const text = await response.text();
      return response.ok && text.startsWith("{") ? JSON.parse(text).result?.hash : `${response.status} ${text}`;
    },
    /** Begins to read something; what it returns ends that. */
    reads: async (url = NODE): Promise<() => Promise<void>> => {
      const reading = asked("eth_getLogs", [{ blockHash: "0x01" }], url);
      while (pending.length === 0) await setImmediate();
      return async () => {
        pending.shift()?.(Response.json({ jsonrpc: "2.0", id: 1, result: [] }));
        await reading;
      };
    },
  };
}

test("a newer head and another block at the same height are shown at once", async () => {
  const { sees } = start();
  expect([await sees(block(5)), await sees(block(6)), await sees(block(6, "b")), await sees(block(9))]).toEqual([
    "a5",
    "a6",
    "b6",
    "a9",
  ]);
});

test("an older head is held back while any node still has the newest", async () => {
  const { sees } = start();
  await sees(block(9));
  for (let turn = 0; turn < 5; turn += 1) {
    expect(await sees(block(7))).toBe("a9");
    vi.advanceTimersByTime(OLDER_MS - 1);
    expect(await sees(block(8))).toBe("a9");
    expect(await sees(block(9))).toBe("a9");
  }
});

test("a chain that stays shorter is shown in the end", async () => {
  const { sees } = start();
  await sees(block(9));
  vi.advanceTimersByTime(OLDER_MS - 1);
  expect(await sees(block(7, "b"))).toBe("a9");
  vi.advanceTimersByTime(1);
  expect(await sees(block(7, "b"))).toBe("b7");
  expect(await sees(block(8, "b"))).toBe("b8");
});

test("the next head waits until the one before is read, for a while", async () => {
  const { sees, reads } = start();
  await sees(block(5));
  const end = await reads();
  expect(await sees(block(6))).toBe("a5");
  await end();
  expect(await sees(block(6))).toBe("a6");

  const endless = await reads();
  vi.advanceTimersByTime(READING_MS - 1);
  expect(await sees(block(7))).toBe("a6");
  vi.advanceTimersByTime(1);
  expect(await sees(block(7))).toBe("a7");
  await endless();
});

test("a request to another server holds nothing back", async () => {
  const { sees, reads } = start();
  await sees(block(5));
  const end = await reads("http://127.0.0.1:9999");
  expect(await sees(block(6))).toBe("a6");
  await end();
});

test("what is not a block passes, and changes nothing", async () => {
  const { sees } = start();
  await sees(block(5));
  const busy = { code: -32005, message: "limit exceeded" };
  expect(await sees(Response.json({ jsonrpc: "2.0", id: 1, result: null }))).toBe(undefined);
  expect(await sees(new Response("try later", { status: 429 }))).toBe("429 try later");
  expect(await sees(Response.json({ jsonrpc: "2.0", id: 1, error: busy }))).toBe(undefined);
  expect(await sees(new Response("<html>", { status: 200 }))).toBe("200 <html>");
  expect(await sees(block(4))).toBe("a5");
});
