import { open, readFile, rename } from "node:fs/promises";
import { dirname } from "node:path";
import { InputError, quote } from "../refusal.ts";
import { isObject, parseStrictJson } from "../strict-json.ts";
import { fromBase64, toBase64 } from "../tlog/base64.ts";
import type { Place } from "../tlog/follow.ts";

/** Where a monitor stopped, or null if the file is not there yet. @throws InputError for a file that is none */
export async function readPlace(file: string): Promise<Place | null> {
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw new InputError(`${quote(file)} cannot be read: ${error.code}`);
  });
  if (text === null) return null;
  try {
    return parse(text);
  } catch {
    throw new InputError(`${quote(file)} is not the state of a monitor; remove it to begin at entry 0`);
  }
}

function parse(text: string): Place {
  const state = parseStrictJson(text);
  if (!isObject(state)) throw new TypeError("no object");
  const { version, origin, size, root, note, edge, verdict } = state;
  const decode = (value: unknown): Uint8Array => {
    const bytes = typeof value === "string" ? fromBase64(value) : null;
    if (bytes === null) throw new TypeError("no base64");
    return bytes;
  };
  if (version !== 1 || typeof origin !== "string" || typeof size !== "number" || typeof note !== "string")
    throw new TypeError("not of this version");
  if (!Array.isArray(edge)) throw new TypeError("no edge");
  const levels = edge.map((hashes, level): [number, Uint8Array] => [level, decode(hashes)]);
  return {
    origin,
    size,
    note,
    root: decode(root),
    edge: new Map(levels.filter(([, hashes]) => hashes.length > 0)),
    verdict:
      isObject(verdict) && typeof verdict.index === "number" && typeof verdict.sha256 === "string"
        ? { index: verdict.index, sha256: verdict.sha256 }
        : null,
  };
}

/** Writes it so that a crash leaves either the old state or the new one. */
export async function writePlace(file: string, { root, edge, ...rest }: Place): Promise<void> {
  const top = Math.max(-1, ...edge.keys());
  const levels = Array.from({ length: top + 1 }, (_, level) => toBase64(edge.get(level) ?? new Uint8Array()));
  const beside = `${file}.new`;
  const handle = await open(beside, "w").catch((error: NodeJS.ErrnoException) => {
    throw new InputError(`${quote(beside)} cannot be written: ${error.code}`);
  });
  try {
    await handle.writeFile(`${JSON.stringify({ version: 1, ...rest, root: toBase64(root), edge: levels })}\n`);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(beside, file);
  const folder = await open(dirname(file));
  await folder.sync().finally(() => folder.close());
}
