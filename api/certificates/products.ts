import {
  CAPABILITIES,
  type Capability,
  PRODUCT_MENU,
  PRODUCTS,
  type Product,
  productOf,
} from "../../packages/verifier/src/vocabulary.ts";

export {
  BAITED_PRODUCTS,
  type BaitedProduct,
  BEHAVIORAL_PRODUCTS,
  type BehavioralProduct,
  type Capability,
  PRODUCT_MENU,
  PRODUCTS,
  type Product,
  productOf,
  SINGLE_PRODUCTS,
  type SingleProduct,
} from "../../packages/verifier/src/vocabulary.ts";

/** All capabilities, in menu order. */
export const CAPABILITY_MENU: readonly Capability[] = PRODUCT_MENU.map((name) => PRODUCTS[name].capability);

/** Returns one value per capability, in the order of a verification record. */
export const perCapability = <Value>(make: (product: Product) => Value): Readonly<Record<Capability, Value>> =>
  Object.fromEntries(CAPABILITIES.map((name) => [name, make(productOf(name))])) as Record<Capability, Value>;

/** Returns a product's name for pages. A product no longer sold is shown by its ID. */
export const titleOf = (product: string): string =>
  Object.hasOwn(PRODUCTS, product) ? PRODUCTS[product as Product].title : product;
