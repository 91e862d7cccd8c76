import type { Product } from "../certificates/products.ts";
import type { BoardRow, SellerRow, Walk } from "./board.ts";
import type { Totals } from "./statistics.ts";

export interface BoardQuery {
  readonly now: Date;
  /** The maximum number of rows. */
  readonly count: number;
  /** Only wallets that currently pass this product, each with its newest PASS for it; null for any product. */
  readonly product: Product | null;
  /** Where the previous page ended; null for the first page. */
  readonly walk: Walk | null;
}

/** What the board reads: wallets verified at `now`, by their newest current PASS, newest first. */
export interface BoardReader {
  certified(query: BoardQuery): Promise<readonly BoardRow[]>;
  /** Verified sellers, in the same order. */
  sellers(query: Omit<BoardQuery, "product">): Promise<readonly SellerRow[]>;
}

/** What the statistics read. It scans every certificate, so it runs rarely. */
export interface TotalsReader {
  /** `firstDay` is midnight UTC of the first day to count individually. */
  totals(now: Date, firstDay: Date): Promise<Totals>;
}
