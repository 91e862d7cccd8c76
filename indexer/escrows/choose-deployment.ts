import { createHash } from "node:crypto";
import type pg from "pg";
import { type Columns, expectColumns } from "../columns.ts";
import type { Deployment } from "../deployment.ts";
import { findSchema } from "../schemas.ts";
import type { IndexerSettings } from "../settings.ts";
import columns from "./columns.json" with { type: "json" };
import { ESCROW_ROWS_VERSION } from "./rows-version.ts";

type Wanted = Pick<IndexerSettings, "viewsSchema" | "escrows" | "escrowStartBlock">;

/** What the names of the escrows' indexes begin with. With hash and start block they fit Ponder's 45 characters. */
export const escrowIndexPrefix = (viewsSchema: string): string => `${viewsSchema}_e`;

/**
 * The index of these escrows: the existing one, else a new, empty one. Other escrows are another index, which is made from
 * the events of the escrows alone.
 * @throws OtherColumnsError if an index is there that this release does not fill
 */
export async function chooseEscrowDeployment(db: pg.Pool, wanted: Wanted, head: number): Promise<Deployment> {
  const { viewsSchema, escrows, escrowStartBlock } = wanted;
  const key = JSON.stringify([ESCROW_ROWS_VERSION, escrows, escrowStartBlock]);
  const hash = createHash("sha256").update(key).digest("hex").slice(0, 8);
  const prefix = `${escrowIndexPrefix(viewsSchema)}_${hash}`;
  const found = await findSchema(db, prefix);
  if (found !== null) {
    await expectColumns(db, found.schema, columns satisfies Columns);
    return found;
  }
  // Ponder never becomes ready from a start block above the head.
  const startBlock = Math.min(escrowStartBlock, head);
  const schema = `${prefix}_${startBlock}`;
  await db.query(`create schema ${schema}`);
  return { schema, startBlock };
}
