import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { startGuarded } from "../../../scripts/embedded/guarded-process.ts";
import { isAlive } from "../../support/alive.ts";
import { waitUntil } from "../../support/wait-until.ts";

const MODULE = fileURLToPath(new URL("../../../scripts/embedded/guarded-process.ts", import.meta.url));
const gone = (pid: number) => waitUntil(() => !isAlive(pid), 10_000);

test("A guarded program and its children end when its parent is killed with -9", async () => {
  const code = `
    const { startGuarded } = await import(${JSON.stringify(MODULE)});
    const args = ["-c", "trap '' TERM INT; sleep 600 & echo $!; wait"];
    const { pid, lastOutput } = await startGuarded({ command: "sh", args });
    while (lastOutput() === "") await new Promise((resolve) => setTimeout(resolve, 10));
    console.log(pid, lastOutput());
    setInterval(() => {}, 1000);`;
  const parent = spawn(process.execPath, ["--input-type=module", "-e", code], { stdio: ["ignore", "pipe", "inherit"] });
  const [line] = await once(parent.stdout, "data");
  const [pid = 0, child = 0] = String(line).split(" ").map(Number);
  expect([isAlive(pid), isAlive(child)]).toEqual([true, true]);
  parent.kill("SIGKILL");
  expect([await gone(pid), await gone(child)]).toEqual([true, true]);
});

test("A program that ignores SIGTERM is killed after the grace period", async () => {
  const stubborn = await startGuarded({
    command: "sh",
    args: ["-c", "trap '' TERM; echo up; while :; do sleep 1; done"],
  });
  await waitUntil(() => stubborn.lastOutput().includes("up"), 5_000);
  await stubborn.stop(200);
  expect(await stubborn.ended).toBe("SIGKILL");
  expect(stubborn.running()).toBe(false);
});

test("A program's end, exit code, and last output are reported", async () => {
  const failing = await startGuarded({ command: "sh", args: ["-c", "echo the reason >&2; exit 7"] });
  expect(await failing.ended).toBe(7);
  await waitUntil(() => failing.lastOutput() !== "", 5_000);
  expect(failing.lastOutput()).toBe("the reason\n");
});

test("A program that does not exist is reported immediately", async () => {
  const missing = await startGuarded({ command: "/nowhere/program", args: [] });
  expect(await missing.ended).toBe(127);
});
