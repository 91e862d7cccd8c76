import type { Arbiter } from "../arbiter/arbiter.ts";
import type { Board } from "../board/read-board.ts";
import type { Atomic } from "../platform/money.ts";
import type { Figures } from "./home-page.ts";

export interface SiteParts {
  readonly board: Pick<Board, "statistics">;
  readonly arbiter: Pick<Arbiter, "totals">;
  /** What all escrow contracts hold now; null while the index cannot tell. */
  readonly held: () => Promise<Atomic | null>;
  readonly now: () => Date;
}

export interface Site {
  /** Counts at most four times a minute; never rejects. */
  figures(): Promise<Figures>;
}

const COUNT_AGAIN_MS = 15_000;

export function createSite(parts: SiteParts): Site {
  let known: { readonly at: number; readonly figures: Promise<Figures> } | null = null;
  return {
    figures() {
      const at = parts.now().getTime();
      // A negative age: the clock was set back, and nobody waits until it has caught up.
      if (known === null || at < known.at || at - known.at >= COUNT_AGAIN_MS) known = { at, figures: count(parts) };
      return known.figures;
    },
  };
}

async function count({ board, arbiter, held }: SiteParts): Promise<Figures> {
  const [statistics, verdicts, escrowed] = await Promise.all([
    board.statistics().catch(() => null),
    arbiter.totals().catch(() => null),
    held().catch(() => null),
  ]);
  return {
    certified: statistics?.wallets.certified ?? null,
    certificates: statistics?.certificates ?? null,
    verdicts: verdicts && Object.values(verdicts).reduce((sum, one) => sum + one, 0),
    escrowed,
  };
}
