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
 * Sends transactions from one key, from any number of processes concurrently. Nonces are allocated under a PostgreSQL
 * lock. Each transaction is signed, stored, then broadcast, and at most `PLACES` of the key are unmined. `tend` resends
 * transactions that the chain lacks, and replaces those that offer less than the market requires.
 */
export interface Relayer {
  readonly address: Address;
  /**
   * Returns the hash of the broadcast transaction, or of an earlier one for the same purpose. Rejects before signing if
   * the call would revert, needs more gas than it may use, or cannot be paid, or if a transaction for the purpose was
   * mined and reverted. Rejects with `TurnedAway` if it was not sent because the lane's share of `PLACES` is taken, or
   * because the account has lost too much gas today.
   */
  send(request: RelayRequest): Promise<Hex>;
  /**
   * Sends one transaction for several purposes, stored and broadcast without a simulation. Rejects if it cannot be
   * paid. Earlier transactions for a purpose count as in `send`.
   */
  ship(shipment: Shipment): Promise<Shipped>;
  /** Returns the purpose's transaction that was mined without success; null if none is known. */
  failed(purpose: Hex): Promise<Hex | null>;
  /** Whether a transaction was stored for the purpose, whatever its status. */
  isSent(purpose: Hex): Promise<boolean>;
  /**
   * Returns the sender and the fees for a simulation, so that a contract cannot tell it from the transaction. Rejects
   * if this much gas cannot be paid.
   */
  terms(gas: bigint): Promise<SendingTerms>;
  /** Returns the current cost of sending an ordinary payment, in wei. */
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

  /** Logs the error here, because callers do not report it. */
  const logged = <T>(sending: Promise<T>): Promise<T> =>
    sending.catch((error: unknown) => {
      if (error instanceof TurnedAway) parts.counter?.turnedAway(error.because);
      parts.log.warn({ err: error }, "a transaction could not be sent");
      throw error;
    });

  return {
    address,
    send: (request) => logged(discreet(() => send(sender, request))()),
    ship: (shipment) => logged(discreet(() => ship(sender, shipment))()),
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
  // The account may have been funded since.
  conditions.forget();
  const found = await conditions();
  if (!pays(found)) throw new Error(`the relayer ${address} has no gas: ${found.balanceWei} wei`);
  return { account: address, ...feesIn(found) };
}
