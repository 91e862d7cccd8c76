import { HttpRequestError, TimeoutError } from "viem";
import { keccak256 } from "../chain/keccak.ts";
import type { Hex } from "../wallet.ts";
import { withoutSecrets } from "../chain/rpc-errors.ts";
import type { Sender } from "./sender.ts";

const ALREADY_THERE = /already known|already imported|already exists|nonce too low/i;

/**
 * Hands a transaction to the node. A refusal is not a failure: the transaction is stored, and `tend` sends it again while
 * its nonce is open. False if the node did not answer at all.
 */
export async function broadcast({ client, log }: Pick<Sender, "client" | "log">, raw: Hex): Promise<boolean> {
  try {
    await client.sendRawTransaction({ serializedTransaction: raw });
    return true;
  } catch (error) {
    if (ALREADY_THERE.test(String(error))) return true;
    const facts = { err: withoutSecrets(error), hash: keccak256(raw) };
    log.warn(facts, "a transaction could not be broadcast; it will be retried");
    return !isSilence(error);
  }
}

const isSilence = (error: unknown): boolean => {
  for (let at = error; at instanceof Error; at = at.cause)
    if (at instanceof HttpRequestError || at instanceof TimeoutError) return true;
  return false;
};
