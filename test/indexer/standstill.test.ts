import pg from "pg";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { endAfterStandstill } from "../../indexer/standstill.ts";

// A process that is stopped and goes on: its clock has moved, and its timers have not run.

const { query } = pg.Client.prototype;
const end = vi.fn();
const asked = vi.fn();

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "Date"] });
  vi.clearAllMocks();
  pg.Client.prototype.query = asked as never;
  endAfterStandstill(end);
});
afterEach(() => {
  pg.Client.prototype.query = query;
  vi.useRealTimers();
});

test("a process that runs goes on, whether it asks the database or not", () => {
  vi.advanceTimersByTime(60_000);
  new pg.Client().query("select 1");
  expect([end.mock.calls.length, asked.mock.calls]).toEqual([0, [["select 1"]]]);
});

test("one that stood still ends before it asks the database anything", () => {
  vi.setSystemTime(Date.now() + 15_001);
  asked.mockImplementation(() => expect(end).toHaveBeenCalledOnce());
  new pg.Client().query("commit");
  expect([end.mock.calls.length, asked.mock.calls.length]).toEqual([1, 1]);
});

test("and soon where it asks nothing", () => {
  vi.setSystemTime(Date.now() + 15_001);
  vi.advanceTimersByTime(1_000);
  expect(end).toHaveBeenCalledOnce();
});
