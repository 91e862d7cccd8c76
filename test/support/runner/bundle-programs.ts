import { mkdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build, type Plugin } from "esbuild";
import { replaceFile } from "../../../scripts/embedded/replace-file.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const API = join(ROOT, "api/");
/** Of the same name in each run, so that what Node has compiled of it is found again. */
const BUNDLE = join(ROOT, "node_modules/.cache/test/api.mjs");

/** A file beside the code is still found, from the place where the code was. */
const ownUrls: Plugin = {
  name: "own-urls",
  setup({ onLoad }) {
    onLoad({ filter: /\.ts$/ }, async ({ path }) => {
      const text = path.startsWith(API) ? await readFile(path, "utf8") : "";
      if (!text.includes("import.meta.url")) return null;
      return { contents: text.replaceAll("import.meta.url", JSON.stringify(pathToFileURL(path).href)), loader: "ts" };
    });
  },
};

/**
 * `api/main.ts` and its packages in one file: a test that kills and restarts it starts it in half the processor time, most of
 * which goes into finding 1,900 modules. Returns its path, inside node_modules, from where native packages are found.
 */
export async function bundleApi(): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [join(API, "main.ts")],
    write: false,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node24",
    external: ["@resvg/resvg-js", "pg-native"],
    // CommonJS packages load what Node brings along by `require`.
    banner: { js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);' },
    plugins: [ownUrls],
    logLevel: "warning",
  });
  mkdirSync(dirname(BUNDLE), { recursive: true });
  for (const { contents } of outputFiles) replaceFile(BUNDLE, Buffer.from(contents));
  return BUNDLE;
}
