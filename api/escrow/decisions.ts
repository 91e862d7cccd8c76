import pg from "pg";
import type { ContestWindow } from "./contest/contest-ports.ts";
import type { Cost, EscrowStore, Evaluation, Stored } from "./escrow-ports.ts";
import { OUTCOME_GAS } from "./limits.ts";
import type { Hold } from "./payment.ts";
import { NETWORKS } from "../platform/networks.ts";
import type { Hex } from "../platform/wallet.ts";
import { bytes, named } from "../platform/db/connection.ts";
import { accountOrder, CHARGE, NOBODY } from "./gas.ts";
import type { Share } from "../platform/db/shared-messages.ts";

/** An outcome that nothing was charged for gives nothing back, whatever it takes. */
const RECKONED = `CASE $2::bigint WHEN 0 THEN 0 ELSE ${OUTCOME_GAS} END`;

/**
 * Charges, then stores the task and what belongs to it, all or nothing, in one statement. Two of them for one payment: the
 * one that finds the other's task when it inserts its own has charged in vain, and is undone.
 */
const storing = (rest: string) => `WITH charged AS (${CHARGE} RETURNING 1),
  task AS (INSERT INTO escrow_task (payment, chain, contract, info, decision, record, merchant, amount, contest_until, held_block, gas)
    SELECT $4::bytea, $5::int, $6::bytea, $7::jsonb, $8::text, $9::bytea, $10::bytea, $11::numeric, $12::bigint, $13::bigint, ${RECKONED} FROM charged
    ON CONFLICT DO NOTHING RETURNING 1)${rest}
  SELECT EXISTS (SELECT FROM task) AS stored, EXISTS (SELECT FROM escrow_task WHERE payment = $4::bytea) AS taken,
    require_rows((SELECT count(*) FROM task), (SELECT count(*) FROM charged))`;
const DECIDE = storing(`,
  evaluation AS (INSERT INTO escrow_evaluation (payment, decision, rule, record, document)
    SELECT $4::bytea, $8::text, $14::text, $15::bytea, $16::text FROM task),
  opened AS (INSERT INTO escrow_window (payment, seconds, until, conditions, promised, delivered, block)
    SELECT $4::bytea, $17::int, $12::bigint, $18::json, $19::json, $20::json, $21::bigint
    FROM task WHERE $17::int IS NOT NULL)`);
const TIME_OUT = storing("");
const IS_TAKEN = "SELECT FROM escrow_task WHERE payment = $1";
const NO_ROW = "P0002";

interface Columns {
  readonly stored: boolean;
  readonly taken: boolean;
}

/** What the task says, besides what its hold does. */
interface Outcome extends Pick<Evaluation, "decision"> {
  readonly record: Hex | null;
  readonly until: number | null;
}

const values = (
  { id, network, contract, info, block }: Hold,
  { account, gas, most }: Cost & { readonly account: Buffer },
  { decision, record, until }: Outcome,
) => [
  account,
  String(gas),
  String(most),
  bytes(id),
  NETWORKS[network].chainId,
  bytes(contract),
  JSON.stringify({ ...info, maxAmount: String(info.maxAmount), salt: String(info.salt) }),
  decision,
  record === null ? null : bytes(record),
  bytes(info.receiver),
  String(info.maxAmount),
  until,
  block,
];

const windowValues = (window: ContestWindow | null) =>
  window === null
    ? [null, null, null, null, null]
    : [
        window.seconds,
        ...[window.conditions, window.promised, window.delivered].map((part) => JSON.stringify(part)),
        window.block,
      ];

/** Stores decisions, those that come at the same time with one commit. */
export function createDecisions(share: Share): Pick<EscrowStore, "decide" | "timeOut"> {
  const isTaken = async (payment: unknown) => (await share(named(IS_TAKEN, [payment]), "")).rowCount !== 0;
  const store = async (text: string, given: readonly unknown[]): Promise<Stored> => {
    const order = accountOrder(given[0] as Buffer, given[3] as Buffer);
    try {
      const { rows } = await share<Columns>(named(text, given), order);
      if (rows[0]?.stored) return "stored";
      // What waited for the account's lock looked for the task before another one stored it, and spent what was left.
      return rows[0]?.taken || (await isTaken(given[3])) ? "taken" : "spent";
    } catch (error) {
      if (error instanceof pg.DatabaseError && error.code === NO_ROW) return "taken";
      throw error;
    }
  };
  return {
    decide(hold, { decision, rule, record, document }, { told, window, ...cost }) {
      const until = window?.until ?? null;
      const charged = { ...cost, account: bytes(hold.info.receiver) };
      return store(DECIDE, [
        ...values(hold, charged, { decision, record: told, until }),
        rule,
        bytes(record),
        document,
        ...windowValues(window),
      ]);
    },
    timeOut: (hold, cost) =>
      store(TIME_OUT, values(hold, { ...cost, account: NOBODY }, { decision: "refund", record: null, until: null })),
  };
}
