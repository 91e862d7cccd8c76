import { PRODUCT_MENU, titleOf } from "../certificates/index.ts";
import { type Atomic, formatUsd } from "../platform/money.ts";
import { NETWORKS, type Network } from "../platform/networks.ts";
import { day } from "../platform/page/html.ts";
import { type Count, isPublic, MINIMUM_WALLETS, NONE, withhold } from "./board.ts";

export const WINDOW_DAYS = 30;
const DAY_MS = 86_400_000;

export interface ProductTotals {
  readonly product: string;
  /** Distinct wallets with either result. */
  readonly wallets: number;
  readonly passed: Count;
  readonly failed: Count;
}

export interface PaymentTotals {
  readonly network: Network;
  readonly settled: number;
  readonly volume: Atomic;
}

/** Published exams of sellers. Here, the `wallets` of a count are origins. */
export interface SellerTotals {
  readonly tested: number;
  readonly certified: number;
  readonly passed: Count;
  readonly failed: Count;
}

/** Exact counts, for this process only. Reversed certificates and payments are excluded everywhere. */
export interface Totals {
  readonly wallets: { readonly tested: number; readonly certified: number };
  readonly products: readonly ProductTotals[];
  readonly sellers: SellerTotals;
  readonly payments: readonly PaymentTotals[];
  /** Days without a certificate may be missing. `day` is `YYYY-MM-DD`, UTC. */
  readonly days: readonly (Count & { readonly day: string })[];
  /** The total before the first of the days. */
  readonly earlier: Count;
}

/** Returns midnight UTC of the first day in the window that ends today. */
export const firstDay = (now: Date): Date =>
  new Date(Math.floor(now.getTime() / DAY_MS) * DAY_MS - (WINDOW_DAYS - 1) * DAY_MS);

export type Statistics = ReturnType<typeof statistics>;

/**
 * Returns the published statistics, with null for a withheld figure. Totals are always published. `withhold` decides on
 * their parts by test and by day. Results are split only if each side covers enough wallets or none, because one side
 * reveals the other.
 */
export function statistics(totals: Totals, countedAt: Date) {
  const products = everyProduct(totals.products);
  const days = everyDay(totals.days, countedAt);
  const [hiddenProducts, hiddenDays] = [withhold(products.map(bothResults)), withhold(days, totals.earlier)];
  return {
    countedAt,
    wallets: totals.wallets,
    certificates: products.reduce((sum, product) => sum + bothResults(product).certificates, 0),
    products: products.map((product, index) => published(product, hiddenProducts[index] === true)),
    sellers: publishedSellers(totals.sellers),
    payments: everyNetwork(totals.payments),
    days: days.map(({ day, certificates }, index) => ({ day, certificates: hiddenDays[index] ? null : certificates })),
  };
}

/** As for wallets, the results of sellers are split only if each side covers enough of them or none. */
function publishedSellers({ tested, certified, passed, failed }: SellerTotals) {
  const split = isPublic(passed) && isPublic(failed);
  return {
    tested,
    certified,
    certificates: passed.certificates + failed.certificates,
    passed: split ? passed.certificates : null,
    failed: split ? failed.certificates : null,
  };
}

const bothResults = ({ wallets, passed, failed }: ProductTotals): Count => ({
  wallets,
  certificates: passed.certificates + failed.certificates,
});

function published(totals: ProductTotals, isWithheld: boolean) {
  const { product, passed, failed } = totals;
  const { certificates } = bothResults(totals);
  const split = !isWithheld && isPublic(passed) && isPublic(failed);
  return {
    product,
    certificates: isWithheld ? null : certificates,
    passed: split ? passed.certificates : null,
    failed: split ? failed.certificates : null,
    failureShare: split && certificates > 0 ? failed.certificates / certificates : null,
  };
}

/** Every test on sale, in menu order, followed by any other that has certificates. */
function everyProduct(found: readonly ProductTotals[]): readonly ProductTotals[] {
  const sold: readonly string[] = PRODUCT_MENU;
  const others = found.filter(({ product }) => !sold.includes(product));
  return [
    ...sold.map(
      (product) => found.find((one) => one.product === product) ?? { product, wallets: 0, passed: NONE, failed: NONE },
    ),
    ...others.toSorted((a, b) => a.product.localeCompare(b.product)),
  ];
}

/** Each network separately, so that test money is never added to real money. */
const everyNetwork = (found: readonly PaymentTotals[]): readonly PaymentTotals[] =>
  Object.values(NETWORKS).map(
    ({ id }) => found.find(({ network }) => network === id) ?? { network: id, settled: 0, volume: 0n },
  );

function everyDay(found: Totals["days"], now: Date): Totals["days"] {
  const start = firstDay(now).getTime();
  return Array.from({ length: WINDOW_DAYS }, (_, index) => {
    const name = day(new Date(start + index * DAY_MS));
    return found.find((one) => one.day === name) ?? { day: name, ...NONE };
  });
}

const ANONYMITY_NOTE = `No wallet, transaction or certificate is named. Totals are always published. A breakdown by test, result or day is null if it covers fewer than ${MINIMUM_WALLETS} different wallets, and enough other figures are null with it that it cannot be worked out from the total.`;

export function statisticsDocument(statistics: Statistics) {
  const { countedAt, wallets, certificates, products, sellers, payments, days } = statistics;
  return {
    service: "Agent Payment Trust Service",
    counted_at: countedAt.toISOString(),
    anonymity: { minimum_wallets: MINIMUM_WALLETS, note: ANONYMITY_NOTE },
    wallets: { tested: wallets.tested, certified_now: wallets.certified },
    certificates,
    products: products.map(({ product, certificates, passed, failed, failureShare }) => ({
      product,
      title: titleOf(product),
      certificates,
      passed,
      failed,
      failure_share: failureShare === null ? null : Number(failureShare.toFixed(4)),
    })),
    sellers: {
      tested: sellers.tested,
      certified_now: sellers.certified,
      certificates: sellers.certificates,
      passed: sellers.passed,
      failed: sellers.failed,
    },
    payments: payments.map(({ network, settled, volume }) => ({
      network,
      network_key: NETWORKS[network].key,
      asset: "USDC",
      settled,
      volume_atomic: volume.toString(),
      volume: formatUsd(volume),
    })),
    window_days: WINDOW_DAYS,
    days,
  };
}
