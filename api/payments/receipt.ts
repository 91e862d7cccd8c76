import { formatUsd } from "../platform/money.ts";
import { explorerTransactionUrl, type Network } from "../platform/networks.ts";
import type { PaidRoute } from "../platform/http/route.ts";
import type { Address, Hex } from "../platform/wallet.ts";

/** A settled payment, looked up by its transaction. */
export interface Purchase {
  readonly network: Network;
  readonly transaction: Hex;
  readonly block: number;
  readonly final: boolean;
  readonly payer: Address;
  readonly payTo: Address;
  readonly value: bigint;
  readonly route: string;
  /** Path of the public record it bought, if any. */
  readonly location: string | null;
}

export interface Receipts {
  /** A transaction may carry more than one settlement. */
  byTransaction(transaction: Hex): Promise<readonly Purchase[]>;
}

/** The answer of `/receipt?tx=`, with at least one purchase. */
export function receiptDocument(
  purchases: readonly [Purchase, ...Purchase[]],
  baseUrl: string,
  routeOf: (id: string) => Pick<PaidRoute, "path" | "isRecordUnlisted"> | undefined,
) {
  const [{ network, transaction, block, final }] = purchases;
  return {
    transaction,
    network,
    block,
    final,
    explorer_url: explorerTransactionUrl(network, transaction),
    purchases: purchases.map(({ payer, payTo, value, route: id, location }) => {
      const route = routeOf(id);
      return {
        payer,
        pay_to: payTo,
        amount: value.toString(),
        amount_usd: formatUsd(value),
        resource: `${baseUrl}${route?.path ?? `/${id}`}`,
        record_url: location === null || route?.isRecordUnlisted ? null : `${baseUrl}${location}`,
      };
    }),
  };
}
