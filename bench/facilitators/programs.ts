import { execFile } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { type Program, type ProgramOptions, ROOT } from "../programs.ts";

const call = promisify(execFile);
/** A folder for builds, which is not committed and which later runs reuse. */
const CACHE = join(ROOT, "node_modules/.cache/bench-facilitators");
const FOLDER = join(ROOT, "bench/facilitators");

type Run = (file: string, env: Record<string, string>, options?: ProgramOptions) => Promise<Program>;
export type Start = (run: Run, env: Record<string, string>) => Promise<Program>;

/** A facilitator, and how to start it. It is null if its toolchain is missing. */
export interface Facilitator {
  readonly name: string;
  readonly build: () => Promise<Start | null>;
}

const PYPI = ["x402[evm]==2.25.0", "fastapi==0.165.0", "uvicorn==0.54.0"];

const exists = (command: string, ...args: string[]): Promise<boolean> =>
  call(command, args).then(
    () => true,
    () => false,
  );

export const FACILITATORS: readonly Facilitator[] = [
  {
    name: "stock TypeScript, @x402/evm",
    build: async () => (run, env) => run("bench/facilitators/stock.ts", env),
  },
  {
    name: "x402-rs 2.0.2",
    async build() {
      if (!(await exists("cargo", "--version"))) return missing("x402-rs", "cargo is not installed");
      const manifest = join(FOLDER, "x402-rs/Cargo.toml");
      const target = join(CACHE, "x402-rs");
      await call("cargo", ["build", "--release", "--locked", "--manifest-path", manifest, "--target-dir", target]);
      const program = join(target, "release/x402-rs-facilitator");
      return (run, env) => run(program, env, { command: program });
    },
  },
  {
    name: "PyPI x402 2.25.0",
    async build() {
      if (!(await exists("python3", "-c", "import sys, venv; sys.exit(sys.version_info < (3, 10))")))
        return missing("the PyPI facilitator", "Python 3.10 or newer with venv is not installed");
      const home = join(CACHE, "python");
      const python = join(home, "bin/python");
      if (!existsSync(join(home, "whole"))) {
        await call("python3", ["-m", "venv", "--clear", home]);
        await call(python, ["-m", "pip", "install", "--quiet", ...PYPI]);
        mkdirSync(join(home, "whole"));
      }
      return (run, env) => run("bench/facilitators/pypi.py", env, { command: python });
    },
  },
];

function missing(name: string, why: string): null {
  console.log(`Without ${name}: ${why}.`);
  return null;
}
