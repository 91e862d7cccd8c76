import { type BatchTerms, batchCall, isPackable, type SignedTransfer } from "./settlement-batch.ts";
import type { Sharing } from "./sharing.ts";
import { transferData } from "./transfer.ts";

/** The gas limit of a payment by itself: an ordinary account's needs at most 103,312. */
const SINGLE_GAS = 130_000n;

/** How transfers to one payee settle together. */
export const transfersTo = (terms: BatchTerms): Sharing<SignedTransfer> => ({
  payerOf: ({ authorization: { from: payer, nonce } }) => ({ payer, nonce }),
  fits: (transfer) => transfer.authorization.to === terms.payTo && isPackable(transfer),
  several: (transfers) => batchCall(terms, transfers),
  single: ({ authorization, signature }) => ({
    to: terms.usdc,
    data: transferData(authorization, signature),
    gas: SINGLE_GAS,
  }),
});
