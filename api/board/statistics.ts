import { PRODUCT_MENU, titleOf } from "../certification/products.ts";
import { type Atomic, formatUsd } from "../kernel/money.ts";
import { NETWORKS, type Network } from "../kernel/networks.ts";
import { day } from "../layout/html.ts";

export const WINDOW_DAYS = 30;
/** A figure about what fewer wallets did is not published. */
export const MINIMUM_WALLETS = 5;
const DAY_MS = 86_400_000;

/** How many certificates there are, and of how many different wallets. */
export interface Count {
  readonly certificates: number;
  readonly wallets: number;
}

export interface ProductTotals {
  readonly product: string;
  /** Different wallets with either result. */
  readonly wallets: number;
  readonly passed: Count;
  readonly failed: Count;
}

export interface PaymentTotals {
  readonly network: Network;
  readonly settled: number;
  readonly volume: Atomic;
  readonly wallets: number;
}

/** Everything counted exactly, for this process alone. Reversed certificates and payments count nowhere. */
export interface Totals {
  readonly wallets: { readonly tested: number; readonly certified: number };
  readonly products: readonly ProductTotals[];
  readonly payments: readonly PaymentTotals[];
  /** Days without a certificate may be missing. `day` is `YYYY-MM-DD`, UTC. */
  readonly days: readonly (Count & { readonly day: string })[];
}

/** Midnight UTC of the first of the days that end today. */
export const firstDay = (now: Date): Date =>
  new Date(Math.floor(now.getTime() / DAY_MS) * DAY_MS - (WINDOW_DAYS - 1) * DAY_MS);

export type Statistics = ReturnType<typeof statistics>;

/**
 * The published totals; null is a withheld figure. Numbers of wallets are always published: they say nothing about any one.
 * What wallets did is published of at least `MINIMUM_WALLETS` wallets, or of none; results are only split when that is true
 * of either side, since who knows one side of a group's total knows the other.
 */
export function statistics(totals: Totals, countedAt: Date) {
  return {
    countedAt,
    wallets: totals.wallets,
    products: everyProduct(totals.products).map(published),
    payments: everyNetwork(totals.payments).map((payments) => {
      const shown = isPublic(payments.wallets);
      return {
        network: payments.network,
        settled: shown ? payments.settled : null,
        volume: shown ? payments.volume : null,
      };
    }),
    days: everyDay(totals.days, countedAt).map(({ day, certificates, wallets }) => ({
      day,
      certificates: isPublic(wallets) ? certificates : null,
    })),
  };
}

const isPublic = (wallets: number): boolean => wallets === 0 || wallets >= MINIMUM_WALLETS;

function published({ product, wallets, passed, failed }: ProductTotals) {
  const certificates = passed.certificates + failed.certificates;
  const split = isPublic(passed.wallets) && isPublic(failed.wallets);
  return {
    product,
    certificates: isPublic(wallets) ? certificates : null,
    passed: split ? passed.certificates : null,
    failed: split ? failed.certificates : null,
    failureShare: split && certificates > 0 ? failed.certificates / certificates : null,
  };
}

const NONE: Count = { certificates: 0, wallets: 0 };

/** Every test that is sold, in the order of the menu, and after them any other that has certificates. */
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

/** Networks apart, so that test money is never added to money. */
const everyNetwork = (found: readonly PaymentTotals[]): readonly PaymentTotals[] =>
  Object.values(NETWORKS).map(
    ({ id }) => found.find(({ network }) => network === id) ?? { network: id, settled: 0, volume: 0n, wallets: 0 },
  );

function everyDay(found: Totals["days"], now: Date): Totals["days"] {
  const start = firstDay(now).getTime();
  return Array.from({ length: WINDOW_DAYS }, (_, index) => {
    const name = day(new Date(start + index * DAY_MS));
    return found.find((one) => one.day === name) ?? { day: name, ...NONE };
  });
}

export const ANONYMITY_NOTE = `Totals only: no wallet, transaction or certificate. What wallets did is published of at least ${MINIMUM_WALLETS} different wallets; null is a figure about fewer. Numbers of wallets are always published.`;

/** The statistics as JSON. */
export function statisticsDocument({ countedAt, wallets, products, payments, days }: Statistics) {
  return {
    service: "Agent Payment Trust Service",
    counted_at: countedAt.toISOString(),
    anonymity: { minimum_wallets: MINIMUM_WALLETS, note: ANONYMITY_NOTE },
    wallets: { tested: wallets.tested, certified_now: wallets.certified },
    products: products.map(({ product, certificates, passed, failed, failureShare }) => ({
      product,
      title: titleOf(product),
      certificates,
      passed,
      failed,
      failure_share: failureShare === null ? null : Number(failureShare.toFixed(4)),
    })),
    payments: payments.map(({ network, settled, volume }) => ({
      network,
      network_key: NETWORKS[network].key,
      asset: "USDC",
      settled,
      volume_atomic: volume === null ? null : volume.toString(),
      volume: volume === null ? null : formatUsd(volume),
    })),
    window_days: WINDOW_DAYS,
    days,
  };
}
