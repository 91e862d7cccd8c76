import pg from "pg";
import { bytes, hex, inTransaction, named } from "../platform/db/connection.ts";
import { createSharedMessages, type Share } from "../platform/db/shared-messages.ts";
import type { Network } from "../platform/networks.ts";
import { NETWORKS, networkOfChain } from "../platform/networks.ts";
import type { Address, Hex } from "../platform/wallet.ts";
import type { Block, HoldEnd } from "./chain.ts";
import type { ContestWindow } from "./contest/store.ts";
import type { Decision } from "./payment.ts";
import { type Hold, OUTCOME_GAS, type PaymentInfo } from "./payment.ts";
import type { Evaluation } from "./record.ts";

/** The outcome due to one payment on chain. Each payment has one task, so the two outcomes are never both requested. */
export interface Task {
  readonly network: Network;
  readonly contract: Address;
  readonly payment: Hex;
  readonly info: PaymentInfo;
  /** The outcome that is due or, for a final task, the actual one. */
  readonly decision: Decision;
  /**
   * The record that the arbiter sends with the outcome: SHA-256 of the evaluation, or zero if its rule does not count.
   * Null if only the clock decided, so that the arbiter sends no verdict.
   */
  readonly record: Hex | null;
  /** The transaction that ended the hold, or null while the task is open. */
  readonly transaction: Hex | null;
  /** `final` is the end; a reorganization may still undo `mined`. */
  readonly state: "open" | "mined" | "final";
  /** The outcome of that transaction. It may differ from the decision, because anyone may refund after 30 minutes. */
  readonly found: Decision | null;
  /**
   * The time until which the release waits for a contest by the payer, in Unix seconds of the chain; null if it does
   * not wait.
   */
  readonly contestUntil: number | null;
  /** The block that showed its hold. */
  readonly heldBlock: number;
}

/** Its share of the gas of our transaction, or null if somebody else may have paid for it. */
export interface Paid {
  readonly gas: bigint | null;
}

/**
 * The gas that an outcome adds to an account's total for the day, which is never below zero, and the limit for that
 * total.
 */
export interface Cost {
  readonly gas: bigint;
  readonly most: bigint;
}

/** `taken`: the payment already has a task. `spent`: the account has no gas left today. */
export type Stored = "stored" | "taken" | "spent";

/** The stored decision on a payment. If the clock decided, there is a task but no evaluation. */
export interface Decided {
  readonly evaluation: Evaluation | null;
  readonly task: Task | null;
}

export interface EscrowStore {
  decided(payment: Hex): Promise<Decided>;
  /**
   * Stores, in one transaction, an evaluation, its task with the record for the chain, and the window that the release
   * waits for. Charges the payer's account.
   */
  decide(
    hold: Hold,
    evaluation: Evaluation,
    on: Cost & { readonly recordOnChain: Hex; readonly window: ContestWindow | null },
  ): Promise<Stored>;
  /** Stores a refund decided by the clock. All of these share one account. */
  timeOut(hold: Hold, cost: Cost): Promise<Stored>;
  /**
   * Claims due open tasks for half a minute each, ordered by value times age, except that a merchant's second task
   * counts half, and its third a third.
   */
  take(limit: number): Promise<readonly Task[]>;
  /**
   * Makes an open task due after this many seconds, unless its window has ended since it was read, in which case
   * it is already due.
   */
  lookAgain(seen: Pick<Task, "payment" | "contestUntil">, seconds: number): Promise<void>;
  /**
   * Ends the wait of a release whose window has closed. With an open contest, it waits until anyone may refund the
   * hold; then the clock's refund replaces the release, and this gas is credited to the payer's account. Returns null
   * if an answer came first, because the task may have changed.
   */
  closeWindow(
    payment: Hex,
    at: { readonly isRefundable: boolean; readonly gas: bigint },
  ): Promise<Decision | "contested" | null>;
  /** Records what ended an open task's hold, and where. Estimated gas that was not used is credited once. */
  mined(task: Pick<Task, "payment" | "record" | "info">, outcome: HoldEnd & Paid): Promise<void>;
  hasMined(): Promise<boolean>;
  /** Returns blocks that show outcomes of mined tasks and that are due or not after the given block, oldest first. */
  blocks(final: number, limit: number): Promise<readonly Block[]>;
  /**
   * Keeps the tasks of these blocks, which are still on the chain, mined and makes them due after this many seconds.
   */
  wait(blocks: readonly Block[], seconds: number): Promise<void>;
  /** Marks the block and its tasks as final. Returns those that did not end as decided. */
  finish(block: Block): Promise<readonly Pick<Task, "payment" | "decision" | "found">[]>;
  /** Opens the tasks again, because the chain has another block in its place. */
  reopen(block: Block): Promise<void>;
}

/** The account of holds without an evaluation, whose parties anyone can make up. */
const CLOCK_ACCOUNT = Buffer.alloc(20);

/** Accounts are locked in this order, then tasks. */
const accountOrder = (account: Buffer, payment: Buffer): string =>
  `account ${Buffer.concat([account, payment]).toString("hex")}`;

/** The day (UTC) for which an account's gas counts. */
const TODAY = "(now() AT TIME ZONE 'UTC')::date";

/** The account that made the hold, which is charged for its release. */
const PAYER = "decode(substr(task.info->>'payer', 3), 'hex')";

/** The day on which the account of an outcome was charged. */
const DAY_CHARGED = "(task.created_at AT TIME ZONE 'UTC')::date";

/**
 * Adds the gas $2 to the account $1 for today, creating its row. Changes nothing if the total would exceed $3, or if
 * the payment $4 already has a task.
 */
const CHARGE = `INSERT INTO escrow_gas AS account SELECT $1::bytea, ${TODAY}, greatest(0, $2::bigint)
    WHERE $2::bigint <= greatest(0, $3::bigint) AND NOT EXISTS (SELECT FROM escrow_task WHERE payment = $4::bytea)
    ON CONFLICT (account, day) DO UPDATE SET gas = greatest(0, account.gas + $2::bigint)
    WHERE $2::bigint <= 0 OR account.gas + $2::bigint <= $3::bigint`;

/**
 * Credits gas to the account of the payment's payer, on the day on which it was charged. The total is never below zero.
 */
export async function giveBack(client: pg.PoolClient, payment: Buffer, gas: Cost["gas"]): Promise<void> {
  await client.query(
    `UPDATE escrow_gas AS account SET gas = greatest(0, account.gas - $2::bigint) FROM escrow_task AS task
     WHERE task.payment = $1 AND account.account = ${PAYER} AND account.day = ${DAY_CHARGED}`,
    [payment, String(gas)],
  );
}

/**
 * Records what ended the open task $1, and credits the account $6, on the day on which it was charged, with the
 * difference between the estimated gas and the gas $7 that was used. When mined again after a reorganization, it
 * credits at most the rest.
 */
const MINED = `WITH task AS (UPDATE escrow_task AS task
    SET state = 'mined', found = $2, tx = $3, block_number = $4, block_hash = $5, next_attempt_at = now(),
      gas = least(task.gas, $7::bigint)
    FROM escrow_task AS before WHERE task.payment = $1 AND task.state = 'open' AND before.payment = task.payment
    RETURNING before.gas - task.gas AS surplus, ${DAY_CHARGED} AS day)
  UPDATE escrow_gas AS account SET gas = greatest(0, account.gas - surplus) FROM task
  WHERE account.account = $6 AND account.day = task.day AND surplus > 0`;

/** An outcome that was not charged gets no credit, whatever gas it uses. */
const RECKONED = `CASE $2::bigint WHEN 0 THEN 0 ELSE ${OUTCOME_GAS} END`;

/**
 * Charges, then stores the task and its related rows, in one statement. If two run for one payment, the one that finds
 * the other's task when it inserts its own is rolled back, including its charge.
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

/** The task's facts that its hold does not contain. */
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

/** Stores decisions. Concurrent ones share a commit. */
function createDecisions(share: Share): Pick<EscrowStore, "decide" | "timeOut"> {
  const isTaken = async (payment: unknown) => (await share(named(IS_TAKEN, [payment]), "")).rowCount !== 0;
  const store = async (text: string, given: readonly unknown[]): Promise<Stored> => {
    const order = accountOrder(given[0] as Buffer, given[3] as Buffer);
    try {
      const { rows } = await share<Columns>(named(text, given), order);
      if (rows[0]?.stored) return "stored";
      // It waited for the account's lock, so it checked for the task before another one stored it and used up the
      // allowance.
      return rows[0]?.taken || (await isTaken(given[3])) ? "taken" : "spent";
    } catch (error) {
      if (error instanceof pg.DatabaseError && error.code === NO_ROW) return "taken";
      throw error;
    }
  };
  return {
    decide(hold, { decision, rule, record, document }, { recordOnChain, window, ...cost }) {
      const until = window?.until ?? null;
      const charged = { ...cost, account: bytes(hold.info.payer) };
      return store(DECIDE, [
        ...values(hold, charged, { decision, record: recordOnChain, until }),
        rule,
        bytes(record),
        document,
        ...windowValues(window),
      ]);
    },
    timeOut: (hold, cost) =>
      store(
        TIME_OUT,
        values(hold, { ...cost, account: CLOCK_ACCOUNT }, { decision: "refund", record: null, until: null }),
      ),
  };
}

/**
 * Selects a release that waits for its window. Everything that changes its outcome locks it: a contest, its answer, and
 * the window's end.
 */
export const WAITING = `SELECT contest_until, merchant FROM escrow_task
  WHERE payment = $1 AND state = 'open' AND decision = 'release' AND contest_until IS NOT NULL FOR UPDATE`;

/** The columns of `escrow_task` that are read. */
export interface TaskColumns {
  readonly payment: Buffer;
  readonly chain: number;
  readonly contract: Buffer;
  readonly info: Record<string, string | number>;
  readonly decision: Decision;
  readonly record: Buffer | null;
  readonly state: Task["state"];
  readonly tx: Buffer | null;
  readonly found: Decision | null;
  readonly contest_until: string | null;
  readonly held_block: string;
}

export function parseTask(row: TaskColumns): Task {
  const { payment, chain, contract, info, decision, record, state, tx, found } = row;
  const { maxAmount = 0, salt = 0, ...rest } = info;
  return {
    network: networkOfChain(chain),
    contract: hex(contract),
    payment: hex(payment),
    info: { ...rest, maxAmount: BigInt(maxAmount), salt: BigInt(salt) } as PaymentInfo,
    decision,
    record: record && hex(record),
    transaction: tx && hex(tx),
    state,
    found,
    contestUntil: row.contest_until === null ? null : Number(row.contest_until),
    heldBlock: Number(row.held_block),
  };
}

/** How long a claimed task is reserved for its worker. */
const TAKEN = "interval '30 s'";

/** The evaluation joined to its task; null without one. */
interface EvaluationColumns {
  readonly evaluated: Decision | null;
  readonly rule: string;
  readonly evaluation_record: Buffer;
  readonly document: string;
}

interface BlockColumns {
  block_number: string;
  block_hash: Buffer;
}

const CONTESTED = "SELECT FROM escrow_contest WHERE payment = $1 AND is_open";
const CLOSE_WINDOW = "UPDATE escrow_task SET contest_until = NULL WHERE payment = $1";
/** Refunds without a record, because a record would count against the merchant. */
const GIVE_UP = `UPDATE escrow_task SET decision = 'refund', record = NULL, gas = 0, contest_until = NULL
  WHERE payment = $1`;

/**
 * The most valuable and the oldest due tasks, so that the work is bounded. Waiting costs value times age; a merchant's
 * second task counts half, its third a third.
 */
const CANDIDATES = 1_000;
const candidates = (order: string) => `(SELECT payment, merchant, amount, created_at FROM escrow_task
  WHERE state = 'open' AND next_attempt_at <= now() ORDER BY ${order} LIMIT ${CANDIDATES})`;
const TAKE = `UPDATE escrow_task SET next_attempt_at = now() + ${TAKEN} WHERE payment IN (
  SELECT payment FROM escrow_task JOIN (
    SELECT payment, (amount + 1) * (1 + extract(epoch FROM now() - created_at))
      / row_number() OVER (PARTITION BY merchant ORDER BY amount DESC, created_at) AS weight
    FROM (${candidates("amount DESC")} UNION ${candidates("next_attempt_at")}) AS due
  ) AS weighed USING (payment)
  WHERE state = 'open' AND next_attempt_at <= now() ORDER BY weight DESC LIMIT $1 FOR UPDATE OF escrow_task SKIP LOCKED
) RETURNING *`;

/** Every evaluation has a task. */
const DECIDED = `SELECT task.*, evaluation.decision AS evaluated, rule, evaluation.record AS evaluation_record, document
  FROM escrow_task AS task LEFT JOIN escrow_evaluation AS evaluation USING (payment) WHERE task.payment = $1`;
const LOOK_AGAIN = `UPDATE escrow_task SET next_attempt_at = now() + make_interval(secs => $2)
  WHERE payment = $1 AND state = 'open' AND contest_until IS NOT DISTINCT FROM $3`;

/** The order of statements that only read. */
const UNLOCKED = "";
/** Tasks are locked in this order, after the accounts of decisions. */
const taskOrder = (payment: Hex): string => `task ${payment}`;

/**
 * Creates the store of permanent evaluations and of the outcomes due on chain. A payment has one task, so the two
 * outcomes are never both requested.
 */
export function createEscrowStore(pool: pg.Pool): EscrowStore {
  const { share: read } = createSharedMessages(pool);
  const { share: write } = createSharedMessages(pool);
  return {
    async decided(payment) {
      const { rows } = await read<TaskColumns & EvaluationColumns>(named(DECIDED, [bytes(payment)]), UNLOCKED);
      const [row] = rows;
      if (row === undefined) return { evaluation: null, task: null };
      const { evaluated: decision, rule, evaluation_record: record, document } = row;
      const evaluation = decision === null ? null : { payment, decision, rule, record: hex(record), document };
      return { evaluation, task: parseTask(row) };
    },

    ...createDecisions(write),

    async take(limit) {
      const { rows } = await pool.query<TaskColumns>(named(TAKE, [limit]));
      return rows.map(parseTask);
    },

    async lookAgain({ payment, contestUntil }, seconds) {
      await write(named(LOOK_AGAIN, [bytes(payment), seconds, contestUntil]), taskOrder(payment));
    },

    closeWindow: (payment, { isRefundable, gas }) =>
      inTransaction(pool, async (client) => {
        const id = bytes(payment);
        // Contests also lock the task, so none can come between the next two statements.
        if ((await client.query(WAITING, [id])).rowCount === 0) return null;
        const isContested = (await client.query(CONTESTED, [id])).rowCount !== 0;
        if (isContested && !isRefundable) return "contested";
        await client.query(isContested ? GIVE_UP : CLOSE_WINDOW, [id]);
        if (!isContested) return "release";
        await giveBack(client, id, gas);
        return "refund";
      }),

    async mined({ payment, record, info }, { decision, transaction, block, blockHash, gas }) {
      const account = record === null ? CLOCK_ACCOUNT : bytes(info.payer);
      const ended = [bytes(payment), decision, bytes(transaction), block, bytes(blockHash)];
      await write(
        named(MINED, [...ended, account, gas === null ? null : String(gas)]),
        accountOrder(account, bytes(payment)),
      );
    },

    ...watching(pool),
  };
}

/** Mined tasks, by the block that shows their outcomes. */
const watching = (pool: pg.Pool): Pick<EscrowStore, "hasMined" | "blocks" | "wait" | "finish" | "reopen"> => ({
  async hasMined() {
    const { rows } = await pool.query("SELECT EXISTS (SELECT FROM escrow_task WHERE state = 'mined') AS mined");
    return rows[0]?.mined === true;
  },

  async blocks(final, limit) {
    const { rows } = await pool.query<BlockColumns>(
      `SELECT block_number, block_hash FROM escrow_task WHERE state = 'mined'
       AND (next_attempt_at <= now() OR block_number <= $1)
       GROUP BY block_number, block_hash ORDER BY block_number LIMIT $2`,
      [final, limit],
    );
    return rows.map(({ block_number, block_hash }) => ({ block: Number(block_number), blockHash: hex(block_hash) }));
  },

  async wait(blocks, seconds) {
    await pool.query(
      `UPDATE escrow_task SET next_attempt_at = now() + make_interval(secs => $2)
       WHERE state = 'mined' AND block_hash = ANY($1) AND next_attempt_at <= now()`,
      [blocks.map(({ blockHash }) => bytes(blockHash)), seconds],
    );
  },

  async finish({ blockHash }) {
    const { rows } = await pool.query<Pick<TaskColumns, "payment" | "decision" | "found">>(
      `WITH over AS (SELECT payment, decision FROM escrow_task WHERE state = 'mined' AND block_hash = $1 FOR UPDATE)
       UPDATE escrow_task AS task SET state = 'final', decision = found FROM over WHERE task.payment = over.payment
       RETURNING over.payment, over.decision, task.found`,
      [bytes(blockHash)],
    );
    return rows
      .filter(({ decision, found }) => decision !== found)
      .map(({ payment, decision, found }) => ({ payment: hex(payment), decision, found }));
  },

  async reopen({ blockHash }) {
    await pool.query(
      `UPDATE escrow_task SET state = 'open', found = NULL, tx = NULL, block_number = NULL, block_hash = NULL,
         next_attempt_at = now() WHERE state = 'mined' AND block_hash = $1`,
      [bytes(blockHash)],
    );
  },
});
