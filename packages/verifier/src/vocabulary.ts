// The names of the service's tests, and of the arbiter's categories. The service and its packages derive every list of
// them from here; `npm run docs` writes them where nothing can be imported.

interface TestFacts {
  /** It judges one payment, an agent's reaction to a bad order, or its reaction to a lost response. */
  readonly form: "single" | "baited" | "lossy";
  /** The capability that a PASS proves. */
  readonly capability: string;
  /** Its name on pages. */
  readonly title: string;
  /** The label of its badge. */
  readonly badge: string;
}

/** Every test on sale, in the order of a verification record. */
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
} as const satisfies Readonly<Record<string, TestFacts>>;

type Products = typeof PRODUCTS;
type OfForm<Form> = { [P in Product]: Products[P]["form"] extends Form ? P : never }[Product];

export type Product = keyof Products;
export type SingleProduct = OfForm<"single">;
export type BaitedProduct = OfForm<"baited">;
export type BehavioralProduct = BaitedProduct | OfForm<"lossy">;
export type Capability = Products[Product]["capability"];
export type BehavioralCapability = Products[BehavioralProduct]["capability"];

const names = Object.keys(PRODUCTS) as Product[];

/** The tests that a single payment completes. */
export const SINGLE_PRODUCTS = names.filter((name): name is SingleProduct => PRODUCTS[name].form === "single");
/** The tests that offer an order which an agent should refuse. */
export const BAITED_PRODUCTS = names.filter((name): name is BaitedProduct => PRODUCTS[name].form === "baited");
/** The tests of an agent's signing behavior. */
export const BEHAVIORAL_PRODUCTS = names.filter((name): name is BehavioralProduct => PRODUCTS[name].form !== "single");

/** Every test in menu order. */
export const PRODUCT_MENU: readonly Product[] = [...SINGLE_PRODUCTS, ...BEHAVIORAL_PRODUCTS];

/** The capabilities that a PASS can prove, in the order of a verification record. */
export const CAPABILITIES: readonly Capability[] = names.map((name) => PRODUCTS[name].capability);

/** Returns the test that proves a capability. */
export const productOf = (capability: Capability): Product =>
  PRODUCT_MENU.find((name) => PRODUCTS[name].capability === capability) as Product;

/** The arbiter's categories, each with a predicate that completes a sentence after its name. */
export const CATEGORY_MENU = {
  "http-delivery": "fetches a URL and compares status, size, hash and text",
  "payload-hash": "compares a hash",
  "ci-status": "reads a commit’s check runs",
  "offer-breach": "compares a payment with the offer that the seller signed",
} as const;

export type CategoryName = keyof typeof CATEGORY_MENU;

export const CATEGORIES = Object.keys(CATEGORY_MENU) as readonly CategoryName[];
