import { type Hex, keccak256, parseTransaction } from "viem";
import type { BaseLike } from "../../test/support/base-like/base-like.ts";

/** A transaction that was handed to the node. */
export interface Sent {
  readonly hash: Hex;
  readonly data: Hex;
  readonly maxFeePerGas: bigint;
}

/** Everything that is handed to the node from now on, every time that it is. */
export function recordSent(base: BaseLike): readonly Sent[] {
  const sent: Sent[] = [];
  base.become((call, pass) => {
    if (call.method === "eth_sendRawTransaction") {
      const raw = String(call.params?.[0]) as Hex;
      const { data = "0x", maxFeePerGas = 0n } = parseTransaction(raw);
      sent.push({ hash: keccak256(raw), data, maxFeePerGas });
    }
    return pass(call);
  });
  return sent;
}
