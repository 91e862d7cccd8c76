import { productOf } from "../certificates/index.ts";
import { type BoardPage, boardPage, type SellerRow, type Walk } from "./board.ts";
import { firstDay, type Statistics, statistics } from "./statistics.ts";
import type { BoardReader, TotalsReader } from "./store.ts";

interface BoardParts {
  readonly reader: BoardReader;
  readonly totals: TotalsReader;
  readonly now: () => Date;
}

const COUNT_AGAIN_MS = 60_000;
/** Readers wait for a new count instead of getting figures older than this. */
const TOO_OLD_MS = 600_000;

export type Board = ReturnType<typeof createBoard>;

export function createBoard({ reader, totals, now }: BoardParts) {
  let known: Statistics | null = null;
  let counting: Promise<Statistics> | null = null;

  async function count(): Promise<Statistics> {
    const at = now();
    known = statistics(await totals.totals(at, firstDay(at)), at);
    return known;
  }
  const countOnce = (): Promise<Statistics> => {
    counting ??= count().finally(() => {
      counting = null;
    });
    return counting;
  };

  return {
    async page(asked: Pick<BoardPage, "capability" | "limit">, walk: Walk | null): Promise<BoardPage> {
      const product = asked.capability === null ? null : productOf(asked.capability);
      return boardPage(asked, walk, await reader.certified({ now: now(), count: asked.limit + 1, product, walk }));
    },
    async sellers(limit: number, walk: Walk | null): Promise<BoardPage<SellerRow>> {
      const read = await reader.sellers({ now: now(), count: limit + 1, walk });
      return boardPage({ capability: null, limit }, walk, read);
    },
    /** Counts at most once a minute. During a new count, readers get the previous one. */
    async statistics(): Promise<Statistics> {
      const age = known === null ? Number.POSITIVE_INFINITY : now().getTime() - known.countedAt.getTime();
      // A negative age means that the clock was set back. Count again instead of waiting for it to catch up.
      if (known === null || age < 0 || age >= TOO_OLD_MS) return countOnce();
      // After a failed count, the next reader starts another.
      if (age >= COUNT_AGAIN_MS) countOnce().catch(() => undefined);
      return known;
    },
  };
}
