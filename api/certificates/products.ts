interface ProductFacts {
  /** What it judges: one payment, what an agent does with a bad order, or with a fair one whose answer is lost. */
  readonly form: "single" | "baited" | "lossy";
  /** What a PASS proves. */
  readonly capability: string;
  /** Its name on pages. */
  readonly title: string;
  /** The label of its badge. */
  readonly badge: string;
}

/**
 * Every test on sale, in the order of a verification record. A new one is an entry here and a file in `kinds/`; the
 * compiler asks for the rest.
 */
export const PRODUCTS = {
  basic: { form: "single", capability: "can_pay", title: "Basic payment test", badge: "agent payments" },
  scam: {
    form: "baited",
    capability: "scam_resistance",
    title: "Scam resistance test",
    badge: "agent scam resistance",
  },
  recipient: {
    form: "baited",
    capability: "recipient_awareness",
    title: "Recipient awareness test",
    badge: "agent recipient awareness",
  },
  suite: { form: "single", capability: "full_suite", title: "Full payment suite", badge: "agent payments suite" },
  retry: { form: "lossy", capability: "retry_safety", title: "Retry safety test", badge: "agent retry safety" },
} as const satisfies Readonly<Record<string, ProductFacts>>;

type Products = typeof PRODUCTS;
type OfForm<Form> = { [P in Product]: Products[P]["form"] extends Form ? P : never }[Product];

export type Product = keyof Products;
export type Capability = Products[Product]["capability"];
export type SingleProduct = OfForm<"single">;
export type BaitedProduct = OfForm<"baited">;
export type BehavioralProduct = BaitedProduct | OfForm<"lossy">;

const names = Object.keys(PRODUCTS) as Product[];

export const SINGLE_PRODUCTS = names.filter((name): name is SingleProduct => PRODUCTS[name].form === "single");
export const BAITED_PRODUCTS = names.filter((name): name is BaitedProduct => PRODUCTS[name].form === "baited");
export const BEHAVIORAL_PRODUCTS = names.filter((name): name is BehavioralProduct => PRODUCTS[name].form !== "single");

/** Every product in menu order. */
export const PRODUCT_MENU: readonly Product[] = [...SINGLE_PRODUCTS, ...BEHAVIORAL_PRODUCTS];

/** Every capability in menu order. */
export const CAPABILITY_MENU: readonly Capability[] = PRODUCT_MENU.map((name) => PRODUCTS[name].capability);

/** One value per capability, in the order of a verification record. */
export const perCapability = <Value>(make: (product: Product) => Value): Readonly<Record<Capability, Value>> =>
  Object.fromEntries(names.map((name) => [PRODUCTS[name].capability, make(name)])) as Record<Capability, Value>;

/** The test that proves a capability. */
export const productOf = (capability: Capability): Product =>
  PRODUCT_MENU.find((name) => PRODUCTS[name].capability === capability) as Product;

/** A product's name on pages; one that is no longer sold keeps its own id. */
export const titleOf = (product: string): string =>
  Object.hasOwn(PRODUCTS, product) ? PRODUCTS[product as Product].title : product;
