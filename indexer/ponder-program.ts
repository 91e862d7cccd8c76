import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { ponderPackage } from "./deployment.ts";

/** What Node is told to run Ponder's command, before the command's own arguments. */
export function ponderProgram(): readonly string[] {
  const preload = pathToFileURL(join(import.meta.dirname, "preload.ts")).href;
  return ["--import", preload, join(dirname(ponderPackage()), "dist/esm/bin/ponder.js")];
}
