import type { EscrowContract } from "../payments/schemes/escrowed/contract.ts";
import { TIMEOUT_TEXT } from "./payment.ts";

/** How far ahead of its offer a payment's capture deadline is, for people. */
const DEADLINE_TEXT = "24 hours and 2 minutes";

/** What it means for a buyer and a merchant where the money of a contract's payments is held. Gas of a typical sale. */
export function custodyOf({ scheme }: Pick<EscrowContract, "scheme">) {
  return scheme === "commerce" ? ESCROW : OPERATOR;
}

const ESCROW = {
  held_by: "the contract itself",
  can_get_stuck:
    "No payment can. If USDC refuses a transfer, because an account is on its blacklist or it is paused, the recipient is owed the amount and withdraws it later.",
  payer_can_reclaim: `From ${TIMEOUT_TEXT} after the hold, like anyone, and always to the payer.`,
  gas: { hold: 120_157, release: 66_556, refund: 60_741 },
};

const OPERATOR = {
  held_by: "base/commerce-payments, at the address custody; the contract is its operator, and alone says where it goes",
  can_get_stuck:
    "A payment can, for a while: transfers are pushed. While USDC is paused, or refuses the merchant or the fee recipient, no release is possible; while it refuses the buyer, no refund. It is retried. A merchant that is refused for good is not paid, and the buyer gets the money back.",
  payer_can_reclaim: `From ${TIMEOUT_TEXT} after the hold, like anyone, through the contract. From the capture deadline, ${DEADLINE_TEXT} after the offer, also past it, from custody itself; then payments(id) says refunded, and the contract has no event of it.`,
  gas: { hold: 176_048, release: 87_967, refund: 73_351 },
};
