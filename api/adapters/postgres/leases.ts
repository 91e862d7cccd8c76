import type pg from "pg";
import type { Lease } from "../../payments/scheme.ts";
import type { Question } from "./message.ts";
import { keyValues } from "./payment-row.ts";

const HELD = `SELECT EXISTS (SELECT FROM payment
    WHERE payment.chain = lease.chain AND payment.asset = lease.asset AND payment.payer = lease.payer
      AND payment.nonce = lease.nonce AND lease_token = token AND state IN ('settling', 'fulfilled')) AS held
  FROM unnest($1::int[], $2::bytea[], $3::bytea[], $4::bytea[], $5::uuid[])
    WITH ORDINALITY AS lease (chain, asset, payer, nonce, token, place) ORDER BY place`;

/** Whether each payment is still to be submitted, and by the run that has this lease of it. */
export function areHeld(leases: readonly Lease[]): Question<readonly boolean[]> {
  const rows = leases.map(({ key, token }) => [...keyValues(key), token]);
  const columns = [0, 1, 2, 3, 4].map((column) => rows.map((row) => row[column]));
  return {
    statement: { name: "payments-held", text: HELD, values: columns },
    answer: ({ rows }: pg.QueryResult<{ held: boolean }>) => rows.map(({ held }) => held),
  };
}
