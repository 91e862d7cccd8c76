import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

const filesUnder = (folder: string): string[] =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .map((name) => join(folder, name))
    .filter((name) => /\.(ts|mjs|sol)$/.test(name) && !/node_modules|generated|\bdist\b/.test(name));

/** The project's own source files, as paths from its root. */
export const SOURCES: readonly string[] = [
  "api",
  "indexer",
  "packages",
  "scripts",
  "contracts",
  "bench",
  "test",
  "ignition",
].flatMap(filesUnder);

const cached = <T>(make: (file: string) => T): ((file: string) => T) => {
  const made = new Map<string, T>();
  return (file) => {
    const known = made.get(file) ?? make(file);
    made.set(file, known);
    return known;
  };
};

export const textOf = cached((file) => readFileSync(join(ROOT, file), "utf8"));

/** Returns the text without its templates, because sample code on a page is text. */
export const codeOf = cached((file) =>
  textOf(file).replace(/`[^`]*`/g, (template) => template.match(/\$\{[^}]*\}/g)?.join(" ") ?? ""),
);

/** Returns a file's imports, including types: paths from the project's root for its own files, names for packages. */
export const importsOf = cached((file) =>
  [
    ...codeOf(file).matchAll(/^\s*(?:import|export)\s(?:[^;]*?\sfrom\s+)?"([^"]+)"/gm),
    ...codeOf(file).matchAll(/\bimport\("([^"]+)"\)/g),
  ]
    .map(([, target]) => target ?? "")
    .map((target) => (target.startsWith(".") ? relative(ROOT, resolve(join(ROOT, dirname(file)), target)) : target)),
);
