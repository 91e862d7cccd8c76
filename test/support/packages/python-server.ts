import { spawn } from "node:child_process";
import { once } from "node:events";
import { freePort } from "../../../scripts/embedded/ports.ts";
import { waitUntil } from "../../../scripts/embedded/wait-until.ts";
import { forFile } from "../for-file.ts";
import type { PythonHome } from "./python.ts";

/** A Python program that serves on a port of its own, which is its first argument. */
export interface PythonServer {
  readonly url: string;
  /** The lines that it has printed. */
  readonly printed: () => readonly string[];
  readonly stop: () => Promise<void>;
}

export interface PythonServerPlan {
  readonly env: Readonly<Record<string, string>>;
  /** The port that it listens on whatever its argument says; default a free one, which is its argument. */
  readonly port?: number;
}

/** Starts it for the rest of the file. */
export async function pythonServer(
  { python, folder }: Pick<PythonHome, "python" | "folder">,
  script: string,
  { env, port: named }: PythonServerPlan,
): Promise<PythonServer> {
  const port = named ?? (await freePort());
  const child = spawn(python, [script, String(port)], { cwd: folder, env: { PATH: process.env.PATH ?? "", ...env } });
  let [out, err] = ["", ""];
  child.stdout.on("data", (part) => {
    out += part;
  });
  child.stderr.on("data", (part) => {
    err += part;
  });
  const ended = once(child, "exit");
  const stop = async () => {
    child.kill();
    await ended;
  };
  await forFile({ stop });
  const url = `http://127.0.0.1:${port}`;
  const isUp = async () => child.exitCode !== null || (await fetch(url).catch(() => null)) !== null;
  await waitUntil(isUp, 30_000, 50);
  if (child.exitCode !== null) throw new Error(`${script} ended: ${err}`);
  return { url, stop, printed: () => out.split("\n").filter((line) => line !== "") };
}
