import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { BuildOptions, Plugin } from "esbuild";
import { hashesFor } from "../../../indexer/blooms.ts";
import { replacementOf } from "../../../indexer/unused-modules.ts";

const INDEXER = fileURLToPath(new URL("../../../indexer/", import.meta.url));
const PACKAGE = fileURLToPath(new URL("../../../node_modules/ponder/", import.meta.url));

/** What Ponder runs by the URL of its file. */
const RUN = ["", "escrows"].flatMap((index) =>
  ["ponder.config.ts", "ponder.schema.ts", "src/index.ts", "src/api/index.ts"].map((name) =>
    join(INDEXER, index, name),
  ),
);

/** Ponder's command after what is loaded before it, as `ponder-program.ts` says. */
export const PONDER: BuildOptions = {
  stdin: {
    contents: `import "./preload.ts"; import ${JSON.stringify(join(PACKAGE, "dist/esm/bin/ponder.js"))};`,
    resolveDir: INDEXER,
  },
  // Node runs what is imported, whatever a package says of its side effects.
  ignoreAnnotations: true,
};

/** Text in place of one of the indexer's modules. */
const inPlaceOf = (name: string, contents: string): Plugin => ({
  name,
  setup({ onLoad }) {
    const isIt = new RegExp(`/indexer/${name}$`);
    onLoad({ filter: isIt }, () => ({ contents, loader: "js", resolveDir: INDEXER }));
  },
});

/** The launcher starts the Ponder of this path. */
export const runsPonderOf = (path: string): Plugin =>
  inPlaceOf("ponder-program.ts", `export const ponderProgram = () => [${JSON.stringify(path)}];`);

const LOOKED_FOR = Symbol();

/** Every module is the one that Node loads with the hooks of `preload.ts`. */
export const asPonderLoads: Plugin = {
  name: "as-ponder-loads",
  setup(bundle) {
    bundle.onResolve({ filter: /^[^.].*|\/graphql\/middleware\.js$/ }, async ({ path, importer, ...looked }) => {
      if (looked.pluginData === LOOKED_FOR || importer === "<stdin>") return null;
      // Of the index whose handler asks.
      if (path === "ponder:schema") return { path: join(dirname(importer), "../ponder.schema.ts") };
      const { kind, resolveDir } = looked;
      const found =
        path === "viem/chains" ? await bundle.resolve(path, { kind, resolveDir, pluginData: LOOKED_FOR }) : { path };
      const from = pathToFileURL(importer).href;
      const url = hashesFor(path, from) ?? replacementOf(path, from, () => pathToFileURL(found.path).href);
      return url === null ? null : { path: fileURLToPath(url) };
    });
    const urls = RUN.map((path) => [pathToFileURL(path).href, path]);
    const known = [...urls, ["ponder:registry", "ponder:registry"]].map(
      ([url, path]) => `${JSON.stringify(url)}: () => import(${JSON.stringify(path)})`,
    );
    const text = `const known = { ${known.join(", ")} }; export const runModule = (url) => known[url]();`;
    inPlaceOf("run-module.ts", text).setup(bundle);
  },
};
