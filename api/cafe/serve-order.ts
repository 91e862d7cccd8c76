import type { Completion } from "../platform/http/answer.ts";
import type { Sale } from "../platform/http/route.ts";
import type { Item } from "./menu.ts";
import { nicknameOf, type Order, receipt, receiptId } from "./receipt.ts";
import type { CafeStore } from "./store.ts";

export interface CafeParts {
  readonly store: CafeStore;
  readonly now: () => Date;
}

export interface Cafe extends Pick<CafeStore, "openRounds" | "served"> {
  /** Completes a paid order with its receipt. */
  readonly order: (item: Item, sale: Sale<Order>) => Completion;
}

export const createCafe = ({ store, now }: CafeParts): Cafe => ({
  openRounds: store.openRounds,
  served: store.served,
  order(item, sale) {
    const { payer } = sale.payment;
    const round = item === "buy-a-round" ? { nickname: nicknameOf(sale.input, payer) } : null;
    const write: Parameters<CafeStore["serve"]>[0]["write"] = (toast) =>
      JSON.stringify(receipt(item, sale, { toast, now: now() }));
    const served = { id: receiptId(sale.payment), payer, round, write };
    return {
      async complete(transaction) {
        const text = await store.serve(served, transaction);
        return { status: 200, body: Buffer.from(text), location: null };
      },
    };
  },
});
