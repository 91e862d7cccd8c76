import type pg from "pg";
import { bytes } from "../../../api/platform/db/connection.ts";
import type { ExamOrder } from "../../../api/sellers/record.ts";

const ROW = `INSERT INTO payment (chain, asset, payer, nonce, digest, signature_sha256, valid_after, valid_before, route,
  fingerprint, input, pay_to, value, version, scheme, received_at, head_block, state, tx, block_number, response, final_at, reason)
  VALUES (8453, $1, $2, $3, '\\x00', '\\x00', 0, 1, '/test/seller', '\\x00', '{}', $2, 1, 'v2', 'exact', now(), 1, $4, $3, 1, '{}', $5, $6)`;

/** The journal's row of the payment that bought an exam. */
export async function storePurchase(
  owner: pg.Client,
  { payment: { asset, payer, nonce } }: ExamOrder,
  { state, isFinal }: { readonly state: "settled" | "fulfilled" | "void"; readonly isFinal: boolean },
): Promise<void> {
  const rest = [state, isFinal ? new Date() : null, state === "void" ? "reversed" : null];
  await owner.query(ROW, [bytes(asset), bytes(payer), bytes(nonce), ...rest]);
}
