import { type Hex, type Log, padHex, parseAbi, toEventSelector } from "viem";
import { usdcEventsAbi } from "../../../contracts/abi.ts";
import type { Address } from "../wallet.ts";
import type { LogFilter } from "./logs.ts";

const [USED, TRANSFER] = usdcEventsAbi;
const [CANCELED] = parseAbi(["event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce)"]);

/** What ends an authorization's nonce (EIP-3009): it is used, or its payer cancels it. */
const [AUTHORIZATION_USED, AUTHORIZATION_CANCELED] = [toEventSelector(USED), toEventSelector(CANCELED)];
const TRANSFERRED = toEventSelector(TRANSFER);

/** Who signed an authorization, and its nonce: together they are used at most once. Both in lower case. */
export interface NonceKey {
  readonly payer: Address;
  readonly nonce: Hex;
}

const topic = (account: Address): Hex => padHex(account, { size: 32 });

const ENDS: readonly (Hex | undefined)[] = [AUTHORIZATION_USED, AUTHORIZATION_CANCELED];

/** The log that ended a nonce, if it is among these. A nonce ends only once. */
export function endIn<Mined extends Log<bigint, number, false>>(
  logs: readonly Mined[],
  { payer, nonce }: NonceKey,
): Mined | undefined {
  const from = topic(payer);
  // Of the logs of many payments, nearly all have another nonce: that is compared first.
  return logs.find(({ topics }) => topics[2] === nonce && topics[1] === from && ENDS.includes(topics[0]));
}

export const isCancellation = ({ topics }: Log): boolean => topics[0] === AUTHORIZATION_CANCELED;

/** The transfer that a use made: USDC logs it right after the use. Null if that log is not among these. */
export function transferAfter(
  logs: readonly Log<bigint, number, false>[],
  end: Log<bigint, number, false>,
): { readonly to: Address; readonly value: bigint } | null {
  const found = logs.find(
    ({ blockHash, logIndex, address, topics }) =>
      logIndex === end.logIndex + 1 &&
      blockHash === end.blockHash &&
      address === end.address &&
      topics[0] === TRANSFERRED &&
      topics[1] === end.topics[1],
  );
  const to = found?.topics[2];
  return found === undefined || to === undefined ? null : { to: `0x${to.slice(-40)}`, value: BigInt(found.data) };
}

/** The logs that end one nonce: at most one exists. */
export const endFilter = (usdc: Address, { payer, nonce }: NonceKey): LogFilter => ({
  address: usdc,
  topics: [[AUTHORIZATION_USED, AUTHORIZATION_CANCELED], topic(payer), nonce],
});

/** The ends of the nonces and the payers' transfers to us in one call: of two, one might come from a node that lags. */
export const settlementFilter = (
  usdc: Address,
  payments: readonly (NonceKey & { readonly payTo: Address })[],
): LogFilter => ({
  address: usdc,
  topics: [
    [AUTHORIZATION_USED, AUTHORIZATION_CANCELED, TRANSFERRED],
    [...new Set(payments.map(({ payer }) => topic(payer)))],
    [...new Set(payments.flatMap(({ nonce, payTo }) => [nonce, topic(payTo)]))],
  ],
});
