import { mkdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { type BuildOptions, build, type Plugin } from "esbuild";
import { replaceFile } from "../../../scripts/embedded/replace-file.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const OWN = ["api/", "indexer/", "scripts/"].map((folder) => join(ROOT, folder));
/** Each of the same name in every run, so that what Node has compiled of it is found again. */
const BUNDLES = join(ROOT, "node_modules/.cache/test");

/** The paths of programs in one file each, inside node_modules, from where native packages are found. */
export interface Programs {
  /** `api/main.ts`. */
  readonly api: string;
  /** `scripts/indexer.ts`. Ponder itself runs from its package. */
  readonly indexer: string;
}

/** A file beside the code is still found, from the place where the code was. */
const ownUrls: Plugin = {
  name: "own-urls",
  setup({ onLoad }) {
    onLoad({ filter: /\.ts$/ }, async ({ path }) => {
      const text = OWN.some((folder) => path.startsWith(folder)) ? await readFile(path, "utf8") : "";
      if (!/import\.meta\.(url|dirname)/.test(text)) return null;
      const contents = text
        .replaceAll("import.meta.url", JSON.stringify(pathToFileURL(path).href))
        .replaceAll("import.meta.dirname", JSON.stringify(dirname(path)));
      return { contents, loader: "ts" };
    });
  },
};

/**
 * Programs that tests kill and restart, with their packages in one file each: they start in half the processor time, most of
 * which goes into finding modules, 1,900 of them in the API.
 */
export async function bundlePrograms(): Promise<Programs> {
  const [api, indexer] = await Promise.all([
    bundle("api", { entryPoints: [join(ROOT, "api/main.ts")], plugins: [ownUrls] }),
    bundle("indexer", { entryPoints: [join(ROOT, "scripts/indexer.ts")], plugins: [ownUrls] }),
  ]);
  return { api, indexer };
}

/** @returns the bundle's path */
async function bundle(name: string, program: BuildOptions): Promise<string> {
  const { outputFiles = [] } = await build({
    ...program,
    write: false,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node24",
    external: ["@resvg/resvg-js", "pg-native", "pg-query-emscripten", "@duckdb/*", "bufferutil", "utf-8-validate"],
    // CommonJS packages load what Node brings along by `require`.
    banner: { js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);' },
    logLevel: "warning",
  });
  const path = join(BUNDLES, `${name}.mjs`);
  mkdirSync(BUNDLES, { recursive: true });
  for (const { contents } of outputFiles) replaceFile(path, Buffer.from(contents));
  return path;
}
