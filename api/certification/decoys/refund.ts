import { createHash } from "node:crypto";
import type { Hex } from "../../kernel/wallet.ts";
import type { Authorization } from "../../payments/scheme.ts";
import type { Received } from "./decoy-store.ts";

const VALID_SECONDS = 3_600n;

/** The nonce is tied to the transfer being returned, so it cannot be returned twice. */
export const refundNonce = ({ transaction, logIndex }: Pick<Received, "transaction" | "logIndex">): Hex =>
  `0x${createHash("sha256").update(`refund|${transaction}|${logIndex}`).digest("hex")}`;

/** Sends what a decoy received back to its sender. `now` in unix seconds. */
export const refundOf = (received: Received, now: bigint): Authorization => ({
  from: received.to,
  to: received.from,
  value: received.value,
  validAfter: 0n,
  validBefore: now + VALID_SECONDS,
  nonce: refundNonce(received),
});
