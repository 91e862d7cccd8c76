import { registerHooks } from "node:module";
import { tablesUrl } from "./without-vite.ts";

const PONDER = /\/node_modules\/ponder\/dist\/esm\//;
const VITE = /^vite(?:-|\/|$)/;

const WITHOUT_VITE = new URL("without-vite.ts", import.meta.url).href;
const WITHOUT_GRAPHQL = new URL("without-graphql.ts", import.meta.url).href;
const REGISTRY = new URL("ponder-registry.ts", import.meta.url).href;

/**
 * Where an import of this name leads in place of what Ponder has there, if anywhere: a module of ours, or for `viem/chains`,
 * which is found at this URL, a file beside it.
 */
export function replacementOf(specifier: string, from: string, found: () => string): string | null {
  if (specifier === "ponder:registry") return REGISTRY;
  if (specifier === "ponder:schema") return tablesUrl();
  if (!PONDER.test(from)) return null;
  if (VITE.test(specifier)) return WITHOUT_VITE;
  if (specifier === "viem/chains") return new URL("definitions/base.js", found()).href;
  return specifier.endsWith("/graphql/middleware.js") ? WITHOUT_GRAPHQL : null;
}

/**
 * From now on Ponder loads neither the definitions of 600 chains, of which it looks up one, nor a GraphQL server, which
 * this index does not have, nor Vite: 1,400 modules at a start instead of 3,300. Its configuration, tables and handlers are
 * TypeScript that Node runs as it is, and what they import from Ponder are the modules that already run.
 */
export function spareUnusedModules(): void {
  registerHooks({
    resolve(specifier, context, next) {
      const find = () => next(specifier, context).url;
      const url = replacementOf(specifier, context.parentURL ?? "", find);
      return url === null ? next(specifier, context) : { url, shortCircuit: true };
    },
  });
}
