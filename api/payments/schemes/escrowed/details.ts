import { z } from "zod";
import type { PaymentInfo } from "../../../../packages/escrow/src/payment-info.ts";
import type { Address } from "../../../platform/wallet.ts";

const lower = (address: string): Address => address.toLowerCase() as Address;
const address = z.string().transform(lower);

const DETAILS = z.object({
  operator: address,
  payer: address,
  receiver: address,
  token: address,
  maxAmount: z.coerce.bigint(),
  preApprovalExpiry: z.number(),
  authorizationExpiry: z.number(),
  refundExpiry: z.number(),
  minFeeBps: z.number(),
  maxFeeBps: z.number(),
  feeReceiver: address,
  salt: z.coerce.bigint(),
});

/** The terms of a hold as the journal stores them: integers too large for JSON are decimal strings. */
export const asDetails = (info: PaymentInfo) => ({
  ...info,
  operator: lower(info.operator),
  payer: lower(info.payer),
  receiver: lower(info.receiver),
  token: lower(info.token),
  feeReceiver: lower(info.feeReceiver),
  maxAmount: info.maxAmount.toString(),
  salt: info.salt.toString(),
});

/** The terms of a hold, addresses in lower case. Throws on anything `asDetails` did not write. */
export const paymentInfoOf = (details: unknown): PaymentInfo => DETAILS.parse(details);
