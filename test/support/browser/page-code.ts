import { execFile, spawn } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { onTestFinished } from "vitest";
import { freePort } from "../../../scripts/embedded/ports.ts";
import { bareEnvironment } from "../service/environment.ts";
import { waitUntil } from "../wait-until.ts";

const call = promisify(execFile);

/** A block of code on a page. */
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
  /** @throws if the page does not have this id */
  readonly block: (id: string) => PageCode;
}

/** Every block of code on a page, as its reader copies it. */
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

/** A reader's working folder and environment. */
export interface Reader {
  readonly home: string;
  readonly env: Readonly<Record<string, string>>;
}

const environment = ({ env }: Reader): Record<string, string> => ({
  ...bareEnvironment(),
  HOME: "/nonexistent",
  ...env,
});

/** Writes a file to the path in its caption. */
export async function save({ home }: Reader, { caption, text }: PageCode): Promise<string> {
  const path = join(home, caption);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text);
  return path;
}

/** Writes a program and runs it to its end. Rejects with its output if it fails. */
export async function run(reader: Reader, code: PageCode): Promise<string> {
  const { stdout } = await call(process.execPath, [await save(reader, code)], {
    cwd: reader.home,
    env: environment(reader),
  });
  return stdout;
}

/** Runs commands like a shell. */
export async function inShell(reader: Reader, { text }: PageCode): Promise<string> {
  const { stdout } = await call("bash", ["-euc", text], { cwd: reader.home, env: environment(reader) });
  return stdout;
}

/**
 * A page's commands with the reader's own values in place of `0x…` and `https://…`. @throws if the page needs a value
 * that the reader does not have
 */
function filled({ id, text }: PageCode, values: Readonly<Record<string, string>>): string {
  return text.replaceAll(/\b([A-Z_]+)=(?:0x…|https:\S+)/g, (_, name: string) => {
    const value = values[name];
    if (value === undefined) throw new Error(`${id} needs ${name}.`);
    return `${name}=${value}`;
  });
}

/** A program of a page with its commands. */
export interface Printed {
  readonly code: PageCode;
  readonly commands: PageCode;
  readonly values?: Readonly<Record<string, string>>;
}

/** Saves a program under its name and runs the page's commands for it. Resolves with their output. */
export async function runAsPrinted(reader: Reader, { code, commands, values = {} }: Printed): Promise<string> {
  await save(reader, code);
  return inShell(reader, { ...commands, text: filled(commands, values) });
}

/** Does the same with a server that runs until the test ends. Returns its origin once it listens. */
export async function serveAsPrinted(reader: Reader, { code, commands, values = {} }: Printed): Promise<string> {
  await save(reader, code);
  const port = await freePort();
  const child = spawn("bash", ["-euc", filled(commands, values)], {
    cwd: reader.home,
    env: { ...environment(reader), PORT: String(port) },
    stdio: "ignore",
    detached: true,
  });
  // Ends the process group, because the shell waits for its children.
  onTestFinished(() => void (child.exitCode === null && process.kill(-Number(child.pid))));
  const origin = `http://localhost:${port}`;
  const isUp = () =>
    fetch(origin).then(
      () => true,
      () => false,
    );
  if (!(await waitUntil(isUp, 240_000))) throw new Error(`${code.caption} does not listen.`);
  return origin;
}
