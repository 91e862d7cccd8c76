import { getAddress } from "viem";
import { offeredContest, refundSecondsBeyond } from "../contest-terms.ts";
import { AUTHORIZATION_SECONDS, commonRequirements, FEE_BPS, MAX_TIMEOUT_SECONDS, type Offer } from "../terms.ts";

/** The x402 payment scheme of these terms. */
export const AUTH_CAPTURE = "auth-capture";
/** The distance of both deadlines from now, in seconds: a day after the latest possible hold. */
const DEADLINE_SECONDS = AUTHORIZATION_SECONDS + MAX_TIMEOUT_SECONDS;

/**
 * Returns the x402 version 2 payment requirements of an offer sold through `ArbiterOperator.sol`. `captureMode` is
 * explicit, because its default, "sync", would leave the hold of a custom operator to its payer. Without
 * `receiverAuthorizer` and `policy` the client chooses the salt; an offer with a window has a policy, which binds it.
 * @param nowMs the start of the deadlines, in milliseconds; they are absolute unix seconds, rounded up
 */
export function requirements(offer: Offer, nowMs: number) {
  const { escrow, contest } = offer;
  const deadline = Math.ceil(nowMs / 1000) + DEADLINE_SECONDS;
  return {
    scheme: AUTH_CAPTURE,
    ...commonRequirements(offer),
    extra: {
      name: escrow.usdc.name,
      version: escrow.usdc.version,
      authCaptureEscrow: getAddress(escrow.custody),
      captureAuthorizer: getAddress(escrow.address),
      operatorType: "custom",
      paymentFlow: "escrow",
      captureMode: "deferred",
      assetTransferMethod: "eip3009",
      captureDeadline: deadline,
      refundDeadline: deadline + (contest === undefined ? 0 : refundSecondsBeyond(contest)),
      feeRecipient: getAddress(escrow.feeReceiver),
      minFeeBps: FEE_BPS,
      maxFeeBps: FEE_BPS,
      ...offeredContest(contest),
    },
  };
}
