import { randomUUID } from "node:crypto";
import type pg from "pg";
import type { Address, Hex } from "viem";
import { bytes } from "../../../api/platform/db/connection.ts";
import type { Signed } from "../payments/signing.ts";
import { sampleOrder, sampleResult, storeExam } from "./samples.ts";

interface Paid {
  readonly origin: string;
  readonly signed: Signed;
  readonly transaction: Hex;
  readonly block: number;
}

const SIGNED = `INSERT INTO seller_exam_signature (nonce, exam, run, pay_to, value, valid_after, valid_before, cost)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $5)`;

const lower = (address: Address) => address.toLowerCase() as Address;

/** Stores a PASS of a minute ago whose one payment really settled. @returns its id */
export async function holdPaid(pool: pg.Pool, { origin, signed, transaction, block }: Paid): Promise<string> {
  const { nonce, from, to, value, validAfter, validBefore } = signed.authorization;
  const order = sampleOrder({ origin, url: `${origin}/haiku`, payTo: lower(to) });
  const settlements = [{ nonce, transaction, block, from: lower(from), to: lower(to), value }];
  await storeExam(pool, order, sampleResult({ endedAt: new Date(Date.now() - 60_000), settlements, spent: value }));
  const amounts = [value, validAfter, validBefore].map(String);
  await pool.query(SIGNED, [bytes(nonce), order.id, randomUUID(), bytes(to), ...amounts]);
  return order.id;
}
