import { registerHooks } from "node:module";
import { tablesUrl } from "./without-vite.ts";

const PONDER = /\/node_modules\/ponder\/dist\/esm\//;
const VITE = /^vite(?:-|\/|$)/;
const NO_GRAPHQL = "data:text/javascript,export const graphql = undefined;";

const WITHOUT_VITE = new URL("without-vite.ts", import.meta.url).href;
const REGISTRY = new URL("ponder-registry.ts", import.meta.url).href;

/**
 * From now on Ponder loads neither the definitions of 600 chains, of which it looks up one, nor a GraphQL server, which
 * this index does not have, nor Vite: 1,400 modules at a start instead of 3,300. Its configuration, tables and handlers are
 * TypeScript that Node runs as it is, and what they import from Ponder are the modules that already run.
 */
export function spareUnusedModules(): void {
  registerHooks({
    resolve(specifier, context, next) {
      if (specifier === "ponder:registry") return { url: REGISTRY, shortCircuit: true };
      if (specifier === "ponder:schema") return { url: tablesUrl(), shortCircuit: true };
      if (!PONDER.test(context.parentURL ?? "")) return next(specifier, context);
      if (VITE.test(specifier)) return { url: WITHOUT_VITE, shortCircuit: true };
      const resolved = next(specifier, context);
      if (specifier === "viem/chains") return { ...resolved, url: new URL("definitions/base.js", resolved.url).href };
      return specifier.endsWith("/graphql/middleware.js") ? { ...resolved, url: NO_GRAPHQL } : resolved;
    },
  });
}
