import { basic } from "./basic.ts";
import type { BehaviouralKind } from "./behavioural.ts";
import type { Kind } from "./kind.ts";
import { recipient } from "./recipient.ts";
import { scam } from "./scam.ts";
import { suite } from "./suite.ts";

/** The single-step tests, in the order of the menu. A new one is a file beside these and a line here. */
export const KINDS: readonly Kind[] = [basic, suite];

/** The tests of behaviour, in the order of the menu; new ones as above. */
export const BEHAVIOURAL_KINDS: readonly BehaviouralKind[] = [scam, recipient];

/** Every product with what it shows, in the order of the menu. */
export const PRODUCTS: readonly Pick<Kind, "product" | "capability">[] = [...KINDS, ...BEHAVIOURAL_KINDS];
