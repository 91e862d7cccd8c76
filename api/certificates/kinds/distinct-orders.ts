import { formatUsd } from "../../platform/money.ts";
import type { BaitedKind } from "./kind.ts";
import type { LossyKind } from "./retry.ts";

type Sold =
  | Pick<BaitedKind, "product" | "entry" | "control" | "bait">
  | Pick<LossyKind, "product" | "entry" | "orders">;

/** Returns the terms that the payments of a session can be signed for. */
const ordersOf = (kind: Sold) => [
  { name: "entry", to: "payee", value: kind.entry },
  ...("bait" in kind
    ? [
        { name: "control", to: "payee", value: kind.control },
        { name: "bait", ...kind.bait },
      ]
    : kind.orders.map((value, index) => ({ name: `order ${index + 1}`, to: "payee", value }))),
];

/**
 * Throws if two orders of a test have the same terms, because a signature could not show which of them was signed: with
 * a bait at the control's price, an agent that pays the control would get a FAIL.
 */
export function requireDistinctOrders(kinds: readonly Sold[]): void {
  for (const kind of kinds) {
    const orders = ordersOf(kind);
    for (const [index, { name, to, value }] of orders.entries()) {
      const same = orders.slice(index + 1).find((other) => other.to === to && other.value === value);
      if (same !== undefined)
        throw new Error(
          `The ${name} and the ${same.name} of the ${kind.product} test both cost ${formatUsd(value)} USDC at the same address; expected different prices, because a signature must show which of them was signed.`,
        );
    }
  }
}
