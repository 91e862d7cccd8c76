import { createHash } from "node:crypto";
import type { Ledger } from "../../packages/seller-check/src/exam/ledger.ts";
import type { Authorization } from "../../packages/seller-check/src/exam/payment.ts";
import type { Address, Hex } from "../kernel/wallet.ts";
import { EXAM_ASSET, EXAM_PRICE } from "./products.ts";
import type { ExamOrder } from "./record.ts";

export interface RefundParts {
  readonly ledger: Pick<Ledger, "read" | "now">;
  /** Pays, as in exams. */
  readonly from: Address;
  /** Signs and submits. @returns why USDC would refuse it; null if it would not */
  readonly send: (authorization: Authorization) => Promise<string | null>;
  readonly now: () => Date;
}

/** How long one try can settle. */
const VALID_SECONDS = 3_600;
/** Nodes behind one address take turns: one of them may lag, and another be on a branch that the chain has left. */
const READINGS = 3;

/** The nonce of every try to pay an exam back: so USDC pays it once, whatever our records say. */
const refundNonce = (id: string): Hex => `0x${createHash("sha256").update(`seller exam refund|${id}`).digest("hex")}`;

/**
 * Pays back what an exam cost its buyer, whose money it took and which something of ours broke.
 * @returns whether the chain shows it; if not, it was submitted, and this is to be asked again
 * @throws Error if the money is not there, or the chain cannot be read
 */
export async function payBack(parts: RefundParts, { id, payment }: ExamOrder): Promise<boolean> {
  const { ledger, send, now } = parts;
  const from = parts.from.toLowerCase() as Address;
  const nonce = refundNonce(id);
  let isPaid = true;
  for (let reading = 0; reading < READINGS && isPaid; reading++)
    isPaid = (await ledger.read({ asset: EXAM_ASSET, from, nonces: [nonce] })).used.has(nonce);
  if (isPaid) return true;
  const at = Math.max(await ledger.now(), Math.floor(now().getTime() / 1000));
  const window = { validAfter: 0n, validBefore: BigInt(at + VALID_SECONDS) };
  const refused = await send({ from, to: payment.payer, value: EXAM_PRICE, ...window, nonce });
  if (refused !== null) throw new Error(`an exam cannot be paid back: ${refused}`);
  return false;
}
