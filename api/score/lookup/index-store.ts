import pg from "pg";
import { dayOf, windowAt } from "../../../packages/verifier/src/score/facts.ts";
import { createReader, type IndexOptions, keyOf, textOf } from "../../platform/index/reader.ts";
import type { Address } from "../../platform/wallet.ts";
import type { Payee } from "./examine.ts";
import type { PayeesReading } from "./inflows.ts";

interface CoverageRow {
  readonly scope: PayeesReading["scope"];
  readonly first_block: number;
}

interface PayeesRow {
  readonly block: number;
  readonly payees: readonly PayeeRow[] | null;
}

interface PayeeRow {
  readonly payee: Address;
  readonly atomic: string;
  readonly unpaid: string;
  readonly last_at: number;
  readonly block: number;
  readonly payers: number;
  readonly newest: readonly { readonly payer: Address; readonly block: number }[] | null;
}

/**
 * Searches by key alone, like the score's own query: `offset 0` keeps the planner from scanning all of a payer's
 * payees.
 */
const payeesQuery = (views: string): string => `
  select position.block::float8, (
    select json_agg(json_build_object(
        'payee', ${textOf("s.payee")}, 'atomic', p.atomic::text, 'unpaid', p.unpaid_atomic::text, 'last_at', p.last_at,
        'block', f.block, 'payers', c.payers, 'newest', n.newest) order by s.ordinal desc)
      from ${views}.payee_slot s
      cross join lateral (select * from ${views}.paid where payer = s.payer and payee = s.payee offset 0) p
      cross join lateral (select * from ${views}.floor_block where payer = s.payer and payee = s.payee offset 0) f
      cross join lateral (select * from ${views}.wallet where wallet = s.payee offset 0) c
      left join lateral (
        select json_agg(json_build_object('payer', ${textOf("r.payer")}, 'block', b.block) order by r.ordinal desc) as newest
          from ${views}.payer_slot r
          cross join lateral (select * from ${views}.floor_block where payer = r.payer and payee = r.payee offset 0) b
          where r.payee = s.payee and r.payer <> s.payer) n on true
      where s.payer = k.key) as payees
  from (select *, ${keyOf("wallet")} as key from unnest($1::text[]) with ordinality given(wallet, place)) k
  cross join ${views}.position order by k.place`;

export type PayeesIndex = ReturnType<typeof createPayeesIndex>;

/** Reads a wallet's payees and their other payers, which only an index of scope `selective` has. */
export function createPayeesIndex(pool: pg.Pool, { viewsSchema, log }: IndexOptions) {
  const read = createReader(pool, log);
  const views = pg.escapeIdentifier(viewsSchema);
  return {
    /** Returns null while the index is unavailable. */
    async payees(wallets: readonly Address[], now: Date): Promise<PayeesReading | null> {
      const [covered] = (await read<CoverageRow>({ text: `select scope, first_block from ${views}.coverage` })) ?? [];
      if (covered === undefined) return null;
      const { scope, first_block: firstBlock } = covered;
      if (scope !== "selective") return { scope, firstBlock, asOfBlock: 0, wallets: [] };
      const query = { name: `payees in ${viewsSchema}`, text: payeesQuery(views), values: [wallets] };
      const rows = await read<PayeesRow>(query);
      if (rows === null || rows.length < wallets.length) return null;
      const { from } = windowAt(now.toISOString());
      const known = rows.map(({ payees }, place) => ({
        wallet: wallets[place] as Address,
        payees: (payees ?? []).map((row) => payeeOf(row, from)),
      }));
      return { scope, firstBlock, asOfBlock: rows[0]?.block ?? 0, wallets: known };
    },
  };
}

const payeeOf = (row: PayeeRow, windowFrom: string): Payee => ({
  payee: row.payee,
  atomic: BigInt(row.atomic),
  unpaid: BigInt(row.unpaid),
  isInWindow: dayOf(new Date(row.last_at * 1000).toISOString()) >= windowFrom,
  block: row.block,
  // The wallet is one of the payers.
  otherPayers: row.payers - 1,
  payers: row.newest ?? [],
});
