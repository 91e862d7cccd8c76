import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";

const EXPORT = /^export (?:\* from "(\.[^"]+)"|\{([^}]+)\}|(?:const|function|class) (\w+))/gm;

/**
 * A module's exports in the order of its text, those of another one where it names that. Ponder locks and replaces tables and
 * views in this order, as those who read several of them do: in another one they would wait for each other. Node sorts by name.
 */
export function exportsInOrder(path: string, exported: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const names = new Set([...namesIn(path).filter((name) => name in exported), ...Object.keys(exported)]);
  return Object.fromEntries([...names].map((name) => [name, exported[name]]));
}

function namesIn(path: string): string[] {
  const found = readFileSync(path, "utf8").matchAll(EXPORT);
  return [...found].flatMap(([, other, some, one]) => {
    if (other !== undefined) return namesIn(join(dirname(path), other));
    return one === undefined ? (some ?? "").split(",").map((part) => part.trim().split(" ").at(-1) ?? "") : [one];
  });
}
