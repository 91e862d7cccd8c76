import type { TransactionReceipt } from "viem";
import { discreet } from "../chain/rpc.ts";
import type { Address, Hex } from "../wallet.ts";
import { type Conditions, feesWithin, readCost, type SendingTerms, spendable } from "./fees.ts";
import type { Shipment } from "./form.ts";
import { type NextBlock, TurnedAway } from "./places.ts";
import { type RelayRequest, type Shipped, send, ship, waitFor } from "./send.ts";
import { createSender, type RelayerParts, type Sender } from "./sender.ts";
import { createUpkeep } from "./tend.ts";

/**
 * Sends transactions from one key, from any number of processes at once. Nonces are allocated under a PostgreSQL lock;
 * each transaction is signed, stored, then broadcast, and at most `PLACES` of the key are unmined. `tend` resends what the
 * chain lacks and replaces what offers less than the market asks.
 */
export interface Relayer {
  readonly address: Address;
  /**
   * Returns the hash of the broadcast transaction, or of the one that was sent for the same purpose before. Rejects
   * before signing if the call would revert, needs more gas than it may use, or cannot be paid, and if one was mined for
   * the purpose and reverted. Rejects with `TurnedAway` if it was not sent because the lane's share of `PLACES` is taken,
   * or because the account has lost too much gas today.
   */
  send(request: RelayRequest): Promise<Hex>;
  /**
   * One transaction for several purposes, stored and broadcast without a simulation. Rejects if it cannot be paid; what
   * was sent for a purpose before counts as in `send`.
   */
  ship(shipment: Shipment): Promise<Shipped>;
  /** The transaction for the purpose that was mined without success; null if none is known. */
  failed(purpose: Hex): Promise<Hex | null>;
  /** Whether a transaction was stored for the purpose, whatever has become of it. */
  isSent(purpose: Hex): Promise<boolean>;
  /**
   * What a simulation needs so that a contract cannot tell it from the transaction: who sends it, and at which fees.
   * Rejects if that much gas cannot be paid.
   */
  terms(gas: bigint): Promise<SendingTerms>;
  /** What sending an ordinary payment costs at the moment, in wei. */
  costWei(): Promise<bigint>;
  /** Returns the receipt of the transaction, or of its replacement. Rejects after `timeoutMs`. */
  waitFor(hash: Hex, timeoutMs: number): Promise<TransactionReceipt>;
  /** Resolves when the chain has a new block, or after `withinMs`. */
  readonly nextBlock: NextBlock;
  tend(): Promise<void>;
}

export function createRelayer(parts: RelayerParts): Relayer {
  const sender = createSender(parts);
  const { address } = sender;

  /** Its callers give no reason away, so log it here. */
  const said = <T>(sending: Promise<T>): Promise<T> =>
    sending.catch((error: unknown) => {
      if (error instanceof TurnedAway) parts.counter?.turnedAway(error.because);
      parts.log.warn({ err: error }, "a transaction could not be sent");
      throw error;
    });

  return {
    address,
    send: (request) => said(discreet(() => send(sender, request))()),
    ship: (shipment) => said(discreet(() => ship(sender, shipment))()),
    failed: async (purpose) => {
      const carried = await sender.carried(purpose);
      return carried !== undefined && "reverted" in carried ? carried.reverted : null;
    },
    isSent: async (purpose) => (await sender.carried(purpose)) !== undefined,
    terms: discreet((gas) => terms(sender, gas)),
    costWei: discreet(readCost(sender)),
    waitFor: (hash, timeoutMs) => waitFor(sender, hash, timeoutMs),
    nextBlock: sender.nextBlock,
    tend: discreet(createUpkeep(sender)),
  };
}

async function terms({ address, conditions }: Sender, gas: bigint): Promise<SendingTerms> {
  const feesIn = ({ market }: Conditions) => feesWithin(undefined, market);
  const pays = (found: Conditions) => spendable(found) >= gas * feesIn(found).maxFeePerGas;
  const remembered = await conditions();
  if (pays(remembered)) return { account: address, ...feesIn(remembered) };
  // It may have been funded since.
  conditions.forget();
  const found = await conditions();
  if (!pays(found)) throw new Error(`the relayer ${address} has no gas: ${found.balanceWei} wei`);
  return { account: address, ...feesIn(found) };
}
