import { execFile } from "node:child_process";
import { randomInt } from "node:crypto";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { freePort } from "../../scripts/embedded/ports.ts";

/** Picks these ports first, and random ones afterwards. */
function picking(...ports: number[]): () => number {
  return () => ports.shift() ?? 10_000 + randomInt(22_000);
}

test("A port that was just handed out is not handed out again, in this process or in another", async () => {
  const taken = await freePort();
  const other = await freePort();
  const third = await freePort();
  expect(new Set([taken, other, third]).size).toBe(3);
  expect([taken, other, third]).not.toContain(await freePort(picking(taken, other, third)));

  const module = new URL("../../scripts/embedded/ports.ts", import.meta.url).href;
  const code = `import { freePort } from ${JSON.stringify(module)};
    const ports = [${taken}, ${other}, ${third}];
    console.log(await freePort(() => ports.shift() ?? 10_001 + Math.floor(Math.random() * 20_000)));`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", code]);
  expect(Number(stdout)).toBeGreaterThan(10_000);
  expect([taken, other, third]).not.toContain(Number(stdout));
});

test("A port that fetch refuses to call is never handed out", async () => {
  await expect(fetch("http://127.0.0.1:10080")).rejects.toMatchObject({ cause: { message: "bad port" } });
  expect(await freePort(picking(10_080))).not.toBe(10_080);
});
