import type pg from "pg";
import { createPrunings } from "../../../api/platform/db/prunings.ts";

/** One round of all prunings; returns how many rows they deleted. */
export async function prune(pool: pg.Pool): Promise<number> {
  let pruned = 0;
  for (const some of createPrunings(pool)) pruned += await some();
  return pruned;
}
