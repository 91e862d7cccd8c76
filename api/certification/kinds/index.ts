import { BEHAVIOURAL_PRODUCTS, type BehaviouralProduct, SINGLE_PRODUCTS, type SingleProduct } from "../products.ts";
import { basic } from "./basic.ts";
import type { BehaviouralKind } from "./behavioural.ts";
import type { Kind } from "./kind.ts";
import { recipient } from "./recipient.ts";
import { scam } from "./scam.ts";
import { suite } from "./suite.ts";

const SINGLE: { readonly [Name in SingleProduct]: Kind<Name> } = { basic, suite };
const BEHAVIOURAL: { readonly [Name in BehaviouralProduct]: BehaviouralKind<Name> } = { scam, recipient };

/** The single-step tests, in menu order. */
export const KINDS: readonly Kind[] = SINGLE_PRODUCTS.map((name) => SINGLE[name]);

/** The tests of behavior, in menu order. */
export const BEHAVIOURAL_KINDS: readonly BehaviouralKind[] = BEHAVIOURAL_PRODUCTS.map((name) => BEHAVIOURAL[name]);
