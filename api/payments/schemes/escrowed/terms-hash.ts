import { PAYMENT_INFO_TYPEHASH, type PaymentInfo } from "../../../../packages/escrow/src/payment-info.ts";
import { addressWord, bytes32Word, uintWord } from "../../../platform/chain/abi-words.ts";
import { keccak256 } from "../../../platform/chain/keccak.ts";
import type { Address, Hex } from "../../../platform/wallet.ts";

const TYPE_HASH = bytes32Word(PAYMENT_INFO_TYPEHASH);
const NOBODY: Address = `0x${"00".repeat(20)}`;

/** The terms of a hold as contracts take them, in their ABI's words. Throws if one does not fit. */
const termsWords = (info: PaymentInfo): string =>
  [
    addressWord(info.operator),
    addressWord(info.payer),
    addressWord(info.receiver),
    addressWord(info.token),
    uintWord(info.maxAmount, 120),
    uintWord(info.preApprovalExpiry, 48),
    uintWord(info.authorizationExpiry, 48),
    uintWord(info.refundExpiry, 48),
    uintWord(info.minFeeBps, 16),
    uintWord(info.maxFeeBps, 16),
    addressWord(info.feeReceiver),
    uintWord(info.salt),
  ].join("");

/** The id of a payment: base/commerce-payments' hash of the terms, the chain and what holds the money. */
export function paymentId(info: PaymentInfo, chainId: number, custody: Address): Hex {
  const terms = keccak256(`0x${TYPE_HASH}${termsWords(info)}`);
  return keccak256(`0x${uintWord(chainId)}${addressWord(custody)}${terms.slice(2)}`);
}

/** The nonce of the payer's authorization: the id computed with a zero payer. */
export const payerAgnosticHash = (info: PaymentInfo, chainId: number, custody: Address): Hex =>
  paymentId({ ...info, payer: NOBODY }, chainId, custody);
