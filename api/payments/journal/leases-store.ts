import type pg from "pg";
import type { Question } from "../../platform/db/connection.ts";
import type { Lease } from "../../platform/relayer/sender.ts";
import { keyValues } from "./row-store.ts";

/** Asks whether each payment is still to be submitted, by the run that holds this lease. */
export function areHeld(leases: readonly Lease[]): Question<readonly boolean[]> {
  const rows = leases.map(({ key, token }) => [...keyValues(key), token]);
  const columns = [0, 1, 2, 3, 4].map((column) => rows.map((row) => row[column]));
  return {
    statement: { name: "payments-held", text: HELD, values: columns },
    answer: ({ rows }: pg.QueryResult<{ held: boolean }>) => rows.map(({ held }) => held),
  };
}

/**
 * Asks whether each payer has paid here before, on the same chain, and has no payment in the journal that was canceled
 * or failed on the chain. Excused failures count: a payer that moves its money away and back within one block leaves no
 * trace. False for a payment that is not in the journal.
 */
export function haveProved(leases: readonly (Lease | null)[]): Question<readonly boolean[]> {
  const rows = leases.map((lease) => (lease === null ? [0, null] : [keyValues(lease.key)[0], keyValues(lease.key)[2]]));
  const columns = [0, 1].map((column) => rows.map((row) => row[column]));
  return {
    statement: { name: "payers-proved", text: PROVED, values: columns },
    answer: ({ rows }: pg.QueryResult<{ proved: boolean }>) => rows.map(({ proved }) => proved),
  };
}

const HELD = `SELECT EXISTS (SELECT FROM payment
    WHERE payment.chain = lease.chain AND payment.asset = lease.asset AND payment.payer = lease.payer
      AND payment.nonce = lease.nonce AND lease_token = token AND state IN ('settling', 'fulfilled')) AS held
  FROM unnest($1::int[], $2::bytea[], $3::bytea[], $4::bytea[], $5::uuid[])
    WITH ORDINALITY AS lease (chain, asset, payer, nonce, token, place) ORDER BY place`;

const PROVED = `SELECT payer IS NOT NULL
    AND EXISTS (SELECT FROM payment WHERE payment.payer = lease.payer AND payment.chain = lease.chain
      AND state IN ('settled', 'fulfilled') AND tx IS NOT NULL)
    AND NOT EXISTS (SELECT FROM payment WHERE payment.payer = lease.payer
      AND state = 'void' AND reason IN ('reverted', 'nonce_consumed')) AS proved
  FROM unnest($1::int[], $2::bytea[]) WITH ORDINALITY AS lease (chain, payer, place) ORDER BY place`;
