import type pg from "pg";
import type { Address } from "viem";

const TABLES = [
  ...["wallet_day", "pair", "wallet", "paid", "payee_slot", "payer_funder"],
  ...["escrow_day", "coverage", "position"],
];
export const CROWDED_PAYER: Address = `0x00000001${"0".repeat(32)}`;
const address = (kind: number, n: string | number) =>
  `decode(lpad(to_hex(${kind}), 8, '0') || lpad(to_hex(${n}), 32, '0'), 'hex')`;
const [payer, payee, funder] = [address(1, 0), address(2, "n"), address(3, "m")];
const PAYEES = "generate_series(1, 20000) n";

/** The schema `crowded`: a copy of Ponder's tables with a payer of 20,000 payees, each with payers of 20 funders. */
export async function makeCrowded(owner: pg.Pool, schema: string): Promise<void> {
  const copies = TABLES.map(
    (table) => `create table crowded.${table} (like ${schema}.${table} including all);
      insert into crowded.${table} select * from ${schema}.${table};`,
  );
  await owner.query(`create schema crowded; grant usage on schema crowded to trust_api; ${copies.join("\n")}
    insert into crowded.pair select 20000, ${payer}, ${payee}, 50000, 0 from ${PAYEES};
    insert into crowded.paid select 1, 1, 1, null, ${payer}, ${payee}, '', 50000, 0, null from ${PAYEES};
    insert into crowded.payee_slot select n % 64, n, ${payer}, ${payee} from generate_series(19937, 20000) n;
    insert into crowded.payer_funder select ${payee}, ${funder} from generate_series(19001, 20000) n, generate_series(1, 20) m;
    insert into crowded.wallet (wallet, funder, funder_atomic, payees, payers, payer_funders, unfunded_payers)
      select ${payee}, null, 0, 0, 21, 20, 1 from ${PAYEES} union all select ${payer}, ${address(3, 1)}, 1, 20000, 0, 0, 0;
    grant select on all tables in schema crowded to trust_api`);
  // Sizes decide about plans.
  await owner.query("analyze");
}
