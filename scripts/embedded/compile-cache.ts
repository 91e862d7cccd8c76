import { fileURLToPath } from "node:url";

/** The folder in which Node caches compiled code (`NODE_COMPILE_CACHE`), which halves the time of later starts. */
export const COMPILE_CACHE = fileURLToPath(new URL("../../node_modules/.cache/compile", import.meta.url));
