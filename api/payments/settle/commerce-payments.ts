import { BaseError, type PublicClient } from "viem";
import { COMMERCE_PAYMENTS, commercePaymentsAbi } from "../../../contracts/commerce-payments.ts";
import { PAYMENT_INFO_TYPEHASH, type PaymentInfo, paymentId } from "../../../packages/escrow/src/payment-info.ts";

const { escrow, collector } = COMMERCE_PAYMENTS;
/** Collects payments, as opposed to refunds. */
const PAYMENT_COLLECTOR = 0n;

/** Every field has a value of its own, as large as it can be. */
const SAMPLE: PaymentInfo = {
  operator: "0x1111111111111111111111111111111111111111",
  payer: "0x2222222222222222222222222222222222222222",
  receiver: "0x3333333333333333333333333333333333333333",
  token: "0x4444444444444444444444444444444444444444",
  maxAmount: 2n ** 120n - 1n,
  preApprovalExpiry: 2 ** 48 - 3,
  authorizationExpiry: 2 ** 48 - 2,
  refundExpiry: 2 ** 48 - 1,
  minFeeBps: 65_534,
  maxFeeBps: 65_535,
  feeReceiver: "0x5555555555555555555555555555555555555555",
  salt: 2n ** 256n - 1n,
};

/**
 * Checks that base/commerce-payments is on the chain, where and as `contracts/ArbiterOperator.sol` expects it: its hashes
 * are ours, and its collector collects payments for it.
 * @throws Error that says what is there instead.
 */
export async function requireCommercePayments(client: PublicClient): Promise<void> {
  const wanted = [
    ["PAYMENT_INFO_TYPEHASH() of the escrow", PAYMENT_INFO_TYPEHASH],
    ["getHash(…) of the escrow", paymentId({ chainId: await client.getChainId(), escrow }, SAMPLE)],
    ["authCaptureEscrow() of the collector", escrow],
    ["collectorType() of the collector", PAYMENT_COLLECTOR],
  ] as const;
  const [ofEscrow, ofCollector] = [
    { address: escrow, abi: commercePaymentsAbi },
    { address: collector, abi: commercePaymentsAbi },
  ] as const;
  const got = await Promise.all([
    client.readContract({ ...ofEscrow, functionName: "PAYMENT_INFO_TYPEHASH" }),
    client.readContract({ ...ofEscrow, functionName: "getHash", args: [SAMPLE] }),
    client.readContract({ ...ofCollector, functionName: "authCaptureEscrow" }),
    client.readContract({ ...ofCollector, functionName: "collectorType" }),
  ]).catch((cause: unknown) => {
    const reason = cause instanceof BaseError ? cause.shortMessage : "the node did not answer";
    throw new Error(`base/commerce-payments is not at ${escrow} and ${collector}: ${reason}`, { cause });
  });
  for (const [index, [what, value]] of wanted.entries())
    if (String(got[index]).toLowerCase() !== String(value).toLowerCase())
      throw new Error(`base/commerce-payments is another: ${what} is ${got[index]}; expected ${value}.`);
}
