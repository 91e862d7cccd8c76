import { registerHooks } from "node:module";

/** Packages of ES modules that import each other by their files' names. */
const OF_FILES = /\/node_modules\/(?:@noble\/(?:curves|hashes)|abitype|drizzle-orm|hono|kysely|ox|ponder|viem)\//;

/**
 * From now on what these packages import from beside is the file that they name, and an ES module. Node would look for each of
 * a thousand files, and for the `package.json` that says what they are: a quarter of the time in which Ponder is loaded.
 */
export function trustNearModules(): void {
  registerHooks({
    resolve(specifier, context, next) {
      const from = context.parentURL ?? "";
      const isNear = specifier.startsWith(".") && specifier.endsWith(".js") && from.endsWith(".js");
      return isNear && context.conditions.includes("import") && OF_FILES.test(from)
        ? { url: new URL(specifier, from).href, format: "module", shortCircuit: true }
        : next(specifier, context);
    },
  });
}
