import { toFunctionSelector } from "viem";
import type { PaymentInfo } from "../../../packages/escrow/src/payment-info.ts";
import { addressWord, arrayTail, bytes32Word, bytesTail, uintWord } from "../../kernel/abi-words.ts";
import type { Address, Hex } from "../../kernel/wallet.ts";
import type { SignedHold } from "../../payments/escrowed/holds.ts";
import { termsWords } from "../../payments/escrowed/terms-hash.ts";

const TERMS = "(address,address,address,address,uint120,uint48,uint48,uint48,uint16,uint16,address,uint256)";
const SELECTORS = {
  authorize: toFunctionSelector(`authorize(${TERMS},uint256,address,bytes)`),
  release: toFunctionSelector(`release(${TERMS},bytes32,bytes)`),
  refund: toFunctionSelector(`refund(${TERMS},bytes32,bytes)`),
  hold: toFunctionSelector("hold(address,uint256,bytes[])"),
  aggregate3: toFunctionSelector("aggregate3((address,bool,bytes)[])"),
} as const;
const WORD = 32;
const TERMS_WORDS = 12;

/** Where the one argument of unknown length begins, behind the terms and `others` words, of which it is the last. */
const behindTerms = (others: number): string => uintWord((TERMS_WORDS + others) * WORD);

/** The call that places a hold. Anybody may make it. */
export const authorizeData = ({ collector, info, signature }: Omit<SignedHold, "contract" | "nonce">): Hex =>
  `${SELECTORS.authorize}${termsWords(info)}${uintWord(info.maxAmount)}${addressWord(collector)}${behindTerms(3)}${bytesTail(signature)}`;

/** What ends a held payment. */
export interface Ending {
  readonly decision: "release" | "refund";
  readonly info: PaymentInfo;
  readonly record: Hex;
  readonly verdict: Hex;
}

/** The call that releases or refunds a payment. */
export const endingData = ({ decision, info, record, verdict }: Ending): Hex =>
  `${SELECTORS[decision]}${termsWords(info)}${bytes32Word(record)}${behindTerms(2)}${bytesTail(verdict)}`;

/** The settlement batch's call for several calls of one contract. */
export const holdsData = (contract: Address, gasCap: bigint, calls: readonly Hex[]): Hex =>
  `${SELECTORS.hold}${addressWord(contract)}${uintWord(gasCap)}${uintWord(3 * WORD)}${arrayTail(calls.map(bytesTail))}`;

/** Multicall3's call for several calls, each of which may fail without the others. */
export const aggregateData = (calls: readonly { readonly to: Address; readonly data: Hex }[]): Hex =>
  `${SELECTORS.aggregate3}${uintWord(WORD)}${arrayTail(calls.map(callTuple))}`;

const callTuple = ({ to, data }: { readonly to: Address; readonly data: Hex }): string =>
  addressWord(to) + uintWord(1) + uintWord(3 * WORD) + bytesTail(data);
