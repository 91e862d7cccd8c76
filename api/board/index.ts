import type { Config } from "../platform/config/config.ts";
import { type Job, type Platform, type Slice, under } from "../platform/slice.ts";
import { type Board, createBoard as createReader } from "./read-board.ts";
import { boardRoutes } from "./routes.ts";
import { createBoardReader, createCounting, createTotalsReader } from "./store.ts";

export type { Board } from "./read-board.ts";

/** Creates the public board and the anonymous totals. */
export function createBoard({ pool, now }: Platform, { baseUrl }: Config): Slice & { readonly board: Board } {
  const counting: Job = { name: "statistics", everyMs: 10_000, run: createCounting(pool) };
  const board = createReader({ reader: createBoardReader(pool), totals: createTotalsReader(pool), now });
  return { board, routes: under("Board", boardRoutes({ board, baseUrl })), jobs: [counting] };
}
