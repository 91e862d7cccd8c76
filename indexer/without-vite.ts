import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { exportsInOrder } from "./exports-in-order.ts";
import { runModule } from "./run-module.ts";

// What Ponder imports from Vite, vite-node, and a plugin of theirs, done by Node, which runs TypeScript itself.

let root = "";

/** The tables of the index that this process makes. */
export const tablesUrl = (): string => pathToFileURL(join(root, "ponder.schema.ts")).href;

interface ServerPlan {
  readonly root: string;
}

export async function createServer(config: ServerPlan) {
  root = config.root;
  return { config, pluginContainer: { buildStart: async () => undefined }, close: async () => undefined };
}

export class ViteNodeServer {}

export class ViteNodeRunner {
  async executeFile(path: string): Promise<unknown> {
    return exportsInOrder(path, await runModule(pathToFileURL(path).href));
  }

  executeId(id: string): Promise<unknown> {
    return runModule(id);
  }
}

/** Node keeps the lines as they are. */
export const installSourcemapsSupport = (): void => undefined;

const onlyForDevelopment = (): never => {
  throw new Error("Ponder asks this of vite-node only while it reloads changed files.");
};

export const normalizeModuleId = onlyForDevelopment;
export const toFilePath = onlyForDevelopment;

/** A plugin that nothing uses. */
export default (): null => null;
