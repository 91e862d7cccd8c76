import { isObject, type Json } from "../strict-json.ts";
import { fromBase64, toBase64 } from "./base64.ts";
import type { CheckedLog } from "./follow.ts";
import { growTiles } from "./grow.ts";
import { sameBytes } from "./hash.ts";

/** Returns a place as stored JSON. */
export function placeJson({ root, edge, ...rest }: CheckedLog): object {
  const top = Math.max(-1, ...edge.keys());
  const levels = Array.from({ length: top + 1 }, (_, level) => toBase64(edge.get(level) ?? new Uint8Array()));
  return { version: 1, ...rest, root: toBase64(root), edge: levels };
}

/** Without this check, a damaged file would look like a fork. */
function isWhole({ size, root, edge }: Pick<CheckedLog, "size" | "root" | "edge">): boolean {
  try {
    return Number.isSafeInteger(size) && size >= 0 && sameBytes(growTiles({ size, edge, leaves: [] }).root, root);
  } catch {
    return false;
  }
}

/** @throws TypeError if it is not a place */
export function placeOf(state: Json | undefined): CheckedLog {
  if (!isObject(state)) throw new TypeError("not an object");
  const { version, origin, size, root, note, edge } = state;
  const decode = (value: unknown): Uint8Array => {
    const bytes = typeof value === "string" ? fromBase64(value) : null;
    if (bytes === null) throw new TypeError("not base64");
    return bytes;
  };
  if (version !== 1 || typeof origin !== "string" || typeof size !== "number" || typeof note !== "string")
    throw new TypeError("not of this version");
  if (!Array.isArray(edge)) throw new TypeError("no edge");
  const levels = edge.map((hashes, level): [number, Uint8Array] => [level, decode(hashes)]);
  const place = { size, root: decode(root), edge: new Map(levels.filter(([, hashes]) => hashes.length > 0)) };
  if (!isWhole(place)) throw new TypeError("its root does not match its edge");
  return { origin, size, note, root: place.root, edge: place.edge };
}
