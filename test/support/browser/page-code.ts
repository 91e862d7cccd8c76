import { execFile, spawn } from "node:child_process";
import { chmod, mkdir, readdir, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { onTestFinished } from "vitest";
import { freePort } from "../../../scripts/embedded/ports.ts";
import { waitUntil } from "../../../scripts/embedded/wait-until.ts";
import { linkOwn } from "../escrow/package.ts";
import { packInto } from "../packages/pack.ts";

const call = promisify(execFile);

/** A block of code as a page shows it. */
export interface PageCode {
  readonly id: string;
  readonly caption: string;
  readonly text: string;
}

const ENTITIES: Readonly<Record<string, string>> = { lt: "<", gt: ">", quot: '"', "#39": "'", amp: "&" };
const textOf = (html: string): string => html.replaceAll(/&(lt|gt|quot|#39|amp);/g, (_, name) => ENTITIES[name] ?? "");

/** The code of a page. */
export interface CodeOfPage {
  readonly blocks: ReadonlyMap<string, PageCode>;
  /** Throws for an id that the page does not have. */
  readonly block: (id: string) => PageCode;
}

/** Every block of a page, as its reader copies it. */
export async function codeOn(url: string): Promise<CodeOfPage> {
  const html = await (await fetch(url, { headers: { accept: "text/html" } })).text();
  const found = html.matchAll(/<span id="([^"]+)-caption">([^<]*)<\/span>.*?<code id="\1">(.*?)<\/code>/gs);
  const blocks = new Map(
    [...found].map(([, id = "", caption = "", text = ""]) => [
      id,
      { id, caption: textOf(caption), text: textOf(text.replaceAll(/<[^>]*>/g, "")) },
    ]),
  );
  return {
    blocks,
    block(id) {
      const one = blocks.get(id);
      if (one === undefined) throw new Error(`The page has no code ${id}.`);
      return one;
    },
  };
}

/** What a reader has installed: our packages as they are packed, others as this project has them. */
export async function installForReader(home: string, others: readonly string[]): Promise<void> {
  await writeFile(join(home, "package.json"), '{"private":true}');
  await Promise.all((["escrow", "verifier"] as const).map((folder) => installPacked(home, folder)));
  for (const name of ["viem", "hono", "@hono/node-server", "jose", "canonicalize", "@noble/hashes", ...others])
    await linkOwn(home, name);
  for (const name of ["core", "evm", "fetch"]) await linkOwn(home, `@x402/${name}`);
  const bin = join(home, "node_modules/.bin");
  await mkdir(bin, { recursive: true });
  const cli = "agent-payment-trust-verifier/dist/cli.js";
  await chmod(join(home, "node_modules", cli), 0o755);
  await symlink(join("..", cli), join(bin, "agent-payment-trust-verifier"));
}

async function installPacked(home: string, folder: "escrow" | "verifier"): Promise<void> {
  const installed = join(home, "node_modules", `agent-payment-trust-${folder}`);
  await mkdir(installed, { recursive: true });
  await packInto(installed, folder);
  const [tarball = ""] = (await readdir(installed)).filter((name) => name.endsWith(".tgz"));
  await call("tar", ["-xzf", join(installed, tarball), "-C", installed, "--strip-components=1"]);
}

/** Where a reader works, and what stands in the environment. */
export interface Reader {
  readonly home: string;
  readonly env: Readonly<Record<string, string>>;
}

const environment = ({ env }: Reader): Record<string, string> => ({
  PATH: process.env.PATH ?? "",
  HOME: "/nonexistent",
  ...env,
});

/** Writes a file where its caption says. */
export async function save({ home }: Reader, { caption, text }: PageCode): Promise<string> {
  const path = join(home, caption);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text);
  return path;
}

/** Writes a program and runs it to its end; rejects with its output when it fails. */
export async function run(reader: Reader, code: PageCode): Promise<string> {
  const { stdout } = await call(process.execPath, [await save(reader, code)], {
    cwd: reader.home,
    env: environment(reader),
  });
  return stdout;
}

/** Runs commands as a shell does. */
export async function inShell(reader: Reader, { text }: PageCode): Promise<string> {
  const { stdout } = await call("bash", ["-euc", text], { cwd: reader.home, env: environment(reader) });
  return stdout;
}

/** Starts a server until the test ends; answers its origin once it listens. */
export async function serve(reader: Reader, code: PageCode): Promise<string> {
  const port = await freePort();
  const env = { ...environment(reader), PORT: String(port) };
  const child = spawn(process.execPath, [await save(reader, code)], {
    cwd: reader.home,
    env,
    stdio: ["ignore", "ignore", "inherit"],
  });
  onTestFinished(() => void child.kill());
  const origin = `http://localhost:${port}`;
  const isUp = () =>
    fetch(origin).then(
      () => true,
      () => false,
    );
  if (!(await waitUntil(isUp, 20_000))) throw new Error(`${code.caption} does not listen.`);
  return origin;
}
