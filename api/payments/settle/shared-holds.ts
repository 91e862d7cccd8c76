import { SETTLEMENT_BATCH } from "../../../contracts/settlement-batch.ts";
import type { Address } from "../../platform/wallet.ts";
import type { SignedHold } from "../schemes/escrowed/holds.ts";
import { authorizeData, holdsData } from "../../escrow/calldata.ts";
import { isCanonical } from "./settlement-batch.ts";
import type { Sharing } from "./sharing.ts";

/**
 * What an ordinary account's hold may use within a batch, and in a transaction of its own. The dearest, where nothing was
 * ever held before, needs 110,600 and 137,300; over base/commerce-payments 188,100 and 194,700.
 */
export const HOLD_GAS = { own: { call: 130_000n, single: 170_000n }, operator: { call: 220_000n, single: 250_000n } };
/** What a batch may use besides, and what a call takes with its calldata and the loop around it. */
const BATCH = { transaction: 60_000n, call: 16_000n };

const gasOf = ({ contract, collector }: Pick<SignedHold, "contract" | "collector">) =>
  collector === contract ? HOLD_GAS.own : HOLD_GAS.operator;

/** How holds of one contract share a transaction. */
export const holdsOf = (contract: Address): Sharing<SignedHold> => ({
  payerOf: ({ info: { payer }, nonce }) => ({ payer, nonce }),
  fits: (hold) => hold.contract === contract && isCanonical(hold.signature),
  several: (holds) => holdBatch(contract, holds),
  single: (hold) => ({ to: contract, data: authorizeData(hold), gas: gasOf(hold).single }),
});

/** The call that makes holds of one contract, in their order. */
function holdBatch(contract: Address, holds: readonly SignedHold[]) {
  const [cap = HOLD_GAS.own.call] = holds.map((hold) => gasOf(hold).call);
  return {
    to: SETTLEMENT_BATCH.address,
    data: holdsData(contract, cap, holds.map(authorizeData)),
    // A call gets at most 63/64 of the gas that is left (EIP-150).
    gas: BATCH.transaction + BigInt(holds.length) * ((cap * 64n) / 63n + BATCH.call),
  };
}
