import { fileURLToPath } from "node:url";

/** Where Node keeps what it has compiled (`NODE_COMPILE_CACHE`): a program starts in half the time from then on. */
export const COMPILE_CACHE = fileURLToPath(new URL("../../node_modules/.cache/compile", import.meta.url));
