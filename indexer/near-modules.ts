import { registerHooks } from "node:module";

/** Packages of ES modules that import each other by their files' names. */
const OF_FILES = /\/node_modules\/(?:@noble\/(?:curves|hashes)|abitype|drizzle-orm|hono|kysely|ox|ponder|viem)\//;

/** The package that a module belongs to. */
const PACKAGE = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+\//;
/** What names a package, or a part of one. */
const OTHER_PACKAGE = /^[^./#][^:]*$/;

/**
 * From now on what these packages import from beside is the file that they name, and an ES module. Node would look for each of
 * a thousand files, and for the `package.json` that says what they are, whose list of exports it reads again for each: a
 * quarter of the time in which Ponder is loaded. What a package's files import from another one is looked for once.
 */
export function trustNearModules(): void {
  const found = new Map<string, ReturnType<typeof of>>();
  const of = (url: string, format: string | null | undefined) => ({ url, format, shortCircuit: true });
  registerHooks({
    resolve(specifier, context, next) {
      const from = context.parentURL ?? "";
      const [home] = PACKAGE.exec(from) ?? [];
      if (home === undefined || !context.conditions.includes("import")) return next(specifier, context);
      if (specifier.startsWith(".") && specifier.endsWith(".js") && from.endsWith(".js") && OF_FILES.test(from))
        return of(new URL(specifier, from).href, "module");
      if (!OTHER_PACKAGE.test(specifier)) return next(specifier, context);
      const key = `${home} ${specifier}`;
      const known = found.get(key);
      if (known !== undefined) return known;
      const { url, format } = next(specifier, context);
      const first = of(url, format);
      found.set(key, first);
      return first;
    },
  });
}
