import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { parse } from "yaml";
import { bareEnvironment } from "../service/environment.ts";

export const ACTION = fileURLToPath(new URL("../../../packages/action", import.meta.url));

interface Step {
  readonly id?: string;
  readonly uses?: string;
  readonly if?: string;
  readonly run?: string;
  readonly env?: Readonly<Record<string, string>>;
}

interface Metadata {
  readonly inputs: Readonly<Record<string, { readonly default?: string; readonly required?: boolean }>>;
  readonly outputs: Readonly<Record<string, { readonly value: string }>>;
  readonly runs: { readonly using: string; readonly steps: readonly Step[] };
}

export const metadata: Metadata = parse(await readFile(join(ACTION, "action.yml"), "utf8"));

export interface Ran {
  readonly code: number;
  readonly log: string;
  readonly outputs: Readonly<Record<string, string>>;
  readonly summary: string;
  /** The folder of the run, which exists until the test ends. */
  readonly folder: string;
}

/** Runs the action's last step as GitHub's runner does, with more of its variables and this project's packages. */
export async function runAction(
  given: Readonly<Record<string, string>>,
  action = ACTION,
  runner: Readonly<Record<string, string>> = {},
): Promise<Ran> {
  const work = await mkdtemp(join(tmpdir(), "action-"));
  onTestFinished(() => rm(work, { recursive: true, force: true }));
  const step = metadata.runs.steps.at(-1);
  const files = { GITHUB_OUTPUT: join(work, "output"), GITHUB_STEP_SUMMARY: join(work, "summary") };
  const script = join(work, "step.sh");
  await Promise.all([
    ...Object.values(files).map((file) => writeFile(file, "")),
    writeFile(script, step?.run ?? "exit 9"),
  ]);
  const filled = (text: string) =>
    text
      .replace(/\$\{\{ steps\.node\.outputs\.program \}\}/, process.execPath)
      .replaceAll(/\$\{\{ (inputs|github)\.([\w-]+) \}\}/g, (_, context, name) =>
        context === "github" ? action : (given[name] ?? metadata.inputs[name]?.default ?? ""),
      );
  const own = Object.fromEntries(Object.entries(step?.env ?? {}).map(([name, value]) => [name, filled(value)]));
  const bare = bareEnvironment();
  const env = { ...bare, PATH: `${dirname(process.execPath)}:${bare.PATH}`, ...files, ...runner, ...own };
  const { code, log } = await new Promise<Pick<Ran, "code" | "log">>((resolve) =>
    execFile(
      "bash",
      ["--noprofile", "--norc", "-eo", "pipefail", script],
      { cwd: work, env },
      (error, stdout, stderr) => resolve({ code: error === null ? 0 : Number(error.code), log: stdout + stderr }),
    ),
  );
  const [output, summary] = await Promise.all(Object.values(files).map((file) => readFile(file, "utf8")));
  return { code, log, outputs: parseOutputs(output ?? ""), summary: summary ?? "", folder: work };
}

/** `name<<end`, lines, `end`: https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions */
const parseOutputs = (text: string): Record<string, string> =>
  Object.fromEntries(
    [...text.matchAll(/^([\w-]+)<<(.+)\n([\s\S]*?)\n\2$/gm)].map(([, name, , value]) => [name, value]),
  );
