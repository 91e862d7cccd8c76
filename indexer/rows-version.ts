/**
 * The number of the rows: of the tables, and of what the handlers and the preload put into them. Raise it when either
 * changes for the same chain and settings; then a new index is made beside the old one. A change of anything else (the
 * code's form, Ponder, the node) keeps the index. `test/indexer/golden.slow.test.ts` says when the number is due.
 */
export const ROWS_VERSION = 1;
