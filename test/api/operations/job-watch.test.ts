import { beforeEach, describe, expect, test } from "vitest";
import { createJobWatch, type JobWatch } from "../../../api/platform/jobs/job-watch.ts";

const START = Date.UTC(2026, 10, 24, 12);
const HANG_MS = 600_000;

let ms: number;
let watch: JobWatch;

beforeEach(() => {
  ms = START;
  watch = createJobWatch(() => new Date(ms));
});

const run = (outcome: "done" | "failed", tookMs = 250) => {
  const end = watch.begin("resolve");
  ms += tookMs;
  end(outcome);
};

describe("a job", () => {
  test("is unknown before it has begun", () => expect(watch.list()).toEqual([]));

  test("is listed with its runs, its failures, and its last success", () => {
    run("done");
    run("failed", 500);
    expect(watch.list()).toEqual([
      { name: "resolve", ok: true, runs: 2, failures: 1, lastSuccessAt: new Date(START + 250), lastSeconds: 0.5 },
    ]);
  });

  test("is healthy after two failures in a row, not after three, and again after a success", () => {
    const health = () => watch.list().map(({ ok, failures }) => [ok, failures]);
    run("failed");
    run("failed");
    expect(health()).toEqual([[true, 2]]);
    run("failed");
    expect(health()).toEqual([[false, 3]]);
    run("done");
    expect(health()).toEqual([[true, 3]]);
  });

  test("hangs when one run takes longer than ten minutes", () => {
    run("done");
    const end = watch.begin("resolve");
    ms += HANG_MS;
    expect(watch.list()).toMatchObject([{ ok: true }]);
    ms += 1;
    expect(watch.list()).toMatchObject([{ ok: false, runs: 1 }]);
    end("done");
    expect(watch.list()).toMatchObject([{ ok: true, runs: 2 }]);
  });
});
