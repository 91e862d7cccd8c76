import type { Settlement } from "../platform/chain/view.ts";
import type { Completion } from "../platform/http/answer.ts";
import type { PaidRoute, PaymentKey, Sale } from "../platform/http/route.ts";

interface Parts {
  readonly routes: ReadonlyMap<string, PaidRoute>;
  readonly log: { error(facts: object, message: string): void };
}

interface SoldFor extends Omit<Sale<unknown>, "payment" | "settlement" | "signal"> {
  readonly key: PaymentKey;
  /** The route's name in the journal. */
  readonly route: string;
}

interface Sold extends Pick<Sale<unknown>, "signal"> {
  readonly settlement: Settlement;
  /** Whether the settlement is stored. */
  readonly noted: boolean;
}

/**
 * Makes the sale of a settled payment. Returns `notImmediate` without starting it if the sale may wait or is visible to
 * others, because its settlement must be stored first.
 */
export async function sell(
  { routes, log }: Parts,
  payment: SoldFor,
  { settlement, noted, signal }: Sold,
): Promise<Completion | "notImmediate" | "handleFailed"> {
  const { key, version, payTo, value, validAfter, validBefore, receivedAt, input, details } = payment;
  const about = { payTo, value, validAfter, validBefore, receivedAt, input, details };
  const sale = { payment: key, version, ...about, settlement, signal };
  try {
    const route = routes.get(payment.route);
    if (route === undefined) throw new Error(`no route is called ${payment.route}`);
    if ("immediate" in route.sell) return route.sell.immediate(sale);
    return noted ? await route.sell(sale) : "notImmediate";
  } catch (error) {
    log.error(
      { err: error, route: payment.route, payer: key.payer, nonce: key.nonce },
      "a paid request could not be handled; it will be retried",
    );
    return "handleFailed";
  }
}
