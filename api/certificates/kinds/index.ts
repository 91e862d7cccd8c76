import { BAITED_PRODUCTS, type BaitedProduct, SINGLE_PRODUCTS, type SingleProduct } from "../products.ts";
import { basic } from "./basic.ts";
import type { BaitedKind, Kind } from "./kind.ts";
import { recipient } from "./recipient.ts";
import { scam } from "./scam.ts";
import { suite } from "./suite.ts";

const SINGLE: { readonly [Name in SingleProduct]: Kind<Name> } = { basic, suite };
const BAITED: { readonly [Name in BaitedProduct]: BaitedKind<Name> } = { scam, recipient };

/** The single-step tests, in menu order. */
export const KINDS: readonly Kind[] = SINGLE_PRODUCTS.map((name) => SINGLE[name]);

/** The behavioral tests with a bait, in menu order. */
export const BAITED_KINDS: readonly BaitedKind[] = BAITED_PRODUCTS.map((name) => BAITED[name]);
