import { basic } from "./basic.ts";
import type { Kind } from "./kind.ts";
import { suite } from "./suite.ts";

/** The single-step tests, in the order of the menu. A new one is a file beside these and a line here. */
export const KINDS: readonly Kind[] = [basic, suite];
