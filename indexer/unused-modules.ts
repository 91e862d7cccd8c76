import { registerHooks } from "node:module";

const PONDER = /\/node_modules\/ponder\/dist\/esm\//;
const NO_GRAPHQL = "data:text/javascript,export const graphql = undefined;";

/**
 * Vite-node that leaves every installed package to Node. By itself it takes what lies in a folder `esm`, as Ponder and all
 * of GraphQL do, for something that Node cannot load.
 */
const viteNode = (url: string) =>
  `data:text/javascript,${encodeURIComponent(`
    import { ViteNodeServer as Whole } from ${JSON.stringify(url)};
    export class ViteNodeServer extends Whole {
      constructor(server) {
        super(server, { deps: { external: [/\\/node_modules\\//] } });
      }
    }
  `)}`;

/**
 * From now on Ponder loads neither the definitions of 600 chains, of which it looks up one, nor a GraphQL server, which
 * this index does not have: 1,500 modules at a start instead of 3,300, and an eighth less of the processor. What its
 * configuration, tables and handlers import from Ponder are the modules that already run; translated once more for them,
 * these 425 were half of what a start took.
 */
export function spareUnusedModules(): void {
  registerHooks({
    resolve(specifier, context, next) {
      const resolved = next(specifier, context);
      if (!PONDER.test(context.parentURL ?? "")) return resolved;
      if (specifier === "viem/chains") return { ...resolved, url: new URL("definitions/base.js", resolved.url).href };
      if (specifier === "vite-node/server") return { ...resolved, url: viteNode(resolved.url) };
      return specifier.endsWith("/graphql/middleware.js") ? { ...resolved, url: NO_GRAPHQL } : resolved;
    },
  });
}
