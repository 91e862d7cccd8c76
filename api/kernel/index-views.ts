/** The schema with the views of the escrows, beside the one with those of the payments. */
export const escrowViewsOf = (viewsSchema: string): string => `${viewsSchema}_escrow`;
