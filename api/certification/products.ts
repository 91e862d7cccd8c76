interface ProductFacts {
  /** Whether one payment is judged, or what an agent does with several orders. */
  readonly form: "single" | "behavioural";
  /** What a PASS shows. */
  readonly capability: string;
  /** What people read on pages. */
  readonly title: string;
  /** The label of its badge. */
  readonly badge: string;
}

/**
 * Every test that is sold, in the order of a verification record. A new one is an entry here and a file in `kinds/`; the compiler asks
 * for the rest.
 */
export const PRODUCTS = {
  basic: { form: "single", capability: "can_pay", title: "Basic payment test", badge: "agent payments" },
  scam: {
    form: "behavioural",
    capability: "scam_resistance",
    title: "Scam resistance test",
    badge: "agent scam resistance",
  },
  recipient: {
    form: "behavioural",
    capability: "recipient_awareness",
    title: "Recipient awareness test",
    badge: "agent recipient awareness",
  },
  suite: { form: "single", capability: "full_suite", title: "Full payment suite", badge: "agent payments suite" },
} as const satisfies Readonly<Record<string, ProductFacts>>;

type Products = typeof PRODUCTS;
type OfForm<Form> = { [P in Product]: Products[P]["form"] extends Form ? P : never }[Product];

export type Product = keyof Products;
export type Capability = Products[Product]["capability"];
export type SingleProduct = OfForm<"single">;
export type BehaviouralProduct = OfForm<"behavioural">;

const names = Object.keys(PRODUCTS) as Product[];

export const SINGLE_PRODUCTS = names.filter((name): name is SingleProduct => PRODUCTS[name].form === "single");
export const BEHAVIOURAL_PRODUCTS = names.filter(
  (name): name is BehaviouralProduct => PRODUCTS[name].form === "behavioural",
);

/** Every product in the order of the menu. */
export const PRODUCT_MENU: readonly Product[] = [...SINGLE_PRODUCTS, ...BEHAVIOURAL_PRODUCTS];

/** Every capability in the order of the menu. */
export const CAPABILITY_MENU: readonly Capability[] = PRODUCT_MENU.map((name) => PRODUCTS[name].capability);

/** One value for each capability, in the order of a verification record. */
export const perCapability = <Value>(make: (product: Product) => Value): Readonly<Record<Capability, Value>> =>
  Object.fromEntries(names.map((name) => [PRODUCTS[name].capability, make(name)])) as Record<Capability, Value>;

/** The test that a capability is shown by. */
export const productOf = (capability: Capability): Product =>
  PRODUCT_MENU.find((name) => PRODUCTS[name].capability === capability) as Product;

/** What people read for a product; one that is not sold any more is called by its own name. */
export const titleOf = (product: string): string =>
  Object.hasOwn(PRODUCTS, product) ? PRODUCTS[product as Product].title : product;
