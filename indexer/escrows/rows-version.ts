/** The number of the escrows' rows, as ROWS_VERSION is that of the payments'. */
export const ESCROW_ROWS_VERSION = 2;
