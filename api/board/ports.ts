import type { Product } from "../certification/products.ts";
import type { BoardRow, Walk } from "./board.ts";
import type { Totals } from "./statistics.ts";

export interface BoardQuery {
  readonly now: Date;
  /** How many rows at the most. */
  readonly count: number;
  /** Only wallets that currently pass this product, each with its newest PASS of it; null for any product. */
  readonly product: Product | null;
  /** Where the page before ended; null for the first page. */
  readonly walk: Walk | null;
}

/** What the board reads: wallets that are verified at `now`, in the order of their newest current PASS, newest first. */
export interface BoardReader {
  certified(query: BoardQuery): Promise<readonly BoardRow[]>;
}

/** What the statistics read. It looks at every certificate, so it is asked rarely. */
export interface TotalsReader {
  /** `firstDay` is midnight UTC of the first day to count by the day. */
  totals(now: Date, firstDay: Date): Promise<Totals>;
}
