import type { Network } from "../platform/networks.ts";
import type { Address, Hex } from "../platform/wallet.ts";
import type { Place } from "./cursor.ts";

/** A settled payment of a wallet, as the journal has it. */
export interface StoredPurchase extends Place {
  readonly network: Network;
  readonly asset: Address;
  /** The route's name in the journal. */
  readonly route: string;
  readonly paymentId: string | null;
  readonly payTo: Address;
  readonly value: bigint;
  readonly transaction: Hex;
  readonly block: number;
  readonly final: boolean;
  /** Null while the sale is being made. */
  readonly answer: { readonly status: number; readonly body: Uint8Array } | null;
  /** Path of the public record it bought, if any. */
  readonly location: string | null;
}

export interface AskedPurchases {
  readonly payer: Address;
  readonly network: Network;
  /** Null for the newest. */
  readonly after: Place | null;
  /** Only those that this transaction settled; null for all. */
  readonly transaction: Hex | null;
}

/** A page, newest first. */
interface StoredPage {
  readonly purchases: readonly StoredPurchase[];
  readonly isLast: boolean;
}

/** What a wallet that has signed in is shown. */
export interface ShownPage extends StoredPage {
  readonly wallet: Address;
}

/** What wallets bought, and which nonces are used. */
export interface PurchaseStore {
  /** Marks a nonce as used, for every process; false if it was. */
  readonly useNonce: (nonce: string) => Promise<boolean>;
  /** As many as a page may have, by their number and by the bytes of their answers; at least one if there is any. */
  readonly page: (asked: AskedPurchases) => Promise<StoredPage>;
}
