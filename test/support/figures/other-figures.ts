import { accessSync } from "node:fs";
import { registerHooks } from "node:module";
import { fileURLToPath } from "node:url";
import { FIGURES } from "./figures.ts";

// Imported before a program of the service: changes its prices and limits in the source as it is loaded.
const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const changed = new Map(FIGURES.map(({ file, changes }) => [`${ROOT}${file}`, changes]));
// Otherwise a file that has moved would silently keep its figures.
for (const path of changed.keys()) accessSync(path);

registerHooks({
  load(url, context, next) {
    const loaded = next(url, context);
    const changes = url.startsWith("file:") ? changed.get(fileURLToPath(url)) : undefined;
    if (changes === undefined) return loaded;
    const written = Buffer.from(loaded.source as Uint8Array).toString("utf8");
    return { ...loaded, source: changes.reduce((source, change) => changeIn(source, change, url), written) };
  },
});

function changeIn(source: string, { from, to }: { readonly from: string; readonly to: string }, url: string): string {
  if (!source.includes(from)) throw new Error(`${url} does not say ${from}: the figures to change are out of date`);
  return source.replaceAll(from, to);
}
