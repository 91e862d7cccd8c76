import type pg from "pg";
import { bytes, hex, inTransaction, named } from "../../platform/db/connection.ts";
import { createPresence, isGone } from "../../platform/db/presence.ts";
import type { Hex } from "../../platform/wallet.ts";
import type { SignedDelivery } from "../delivery.ts";
import type { Decision, Hold } from "../payment.ts";
import { giveBack, parseTask, type TaskColumns, WAITING } from "../store.ts";
import type { ContestClaim } from "./claim.ts";
import type { Promised } from "./conditions.ts";

/**
 * How long a contest is reserved for its worker: longer than two fetches with their waits. Another process may take it
 * after this time, or as soon as the worker is gone.
 */
const TAKEN = "interval '60 s'";

interface AnswerColumns {
  readonly decision: Decision;
  readonly rule: string;
  readonly record: Buffer;
  readonly document: string;
}

interface WindowColumns extends Omit<ContestWindow, "until" | "block"> {
  readonly until: string;
  readonly block: string | null;
}

interface ContestColumns {
  readonly claim: ContestClaim;
  readonly claim_sha256: Buffer;
  readonly signature: Buffer;
  readonly made_at: string;
}

const ANSWER = "SELECT decision, rule, record, document FROM escrow_contest_answer WHERE payment = $1";

const IS_DUE = `is_open AND (next_attempt_at <= now() OR owner IS NOT NULL AND ${isGone("owner")})`;
const ARE_DUE = `SELECT EXISTS (SELECT FROM escrow_contest WHERE ${IS_DUE}) AS due`;
/**
 * To delay a contest beyond minute 30, an attacker would need other contests that come first, each worth as much. No
 * window is so short that less would do.
 */
const TAKE = `UPDATE escrow_contest SET next_attempt_at = now() + ${TAKEN}, owner = $2 WHERE payment IN (
  SELECT contest.payment FROM escrow_contest AS contest JOIN escrow_window USING (payment)
    JOIN escrow_task AS task USING (payment)
  WHERE ${IS_DUE.replaceAll("next_attempt_at", "contest.next_attempt_at")}
  ORDER BY task.amount / greatest(60, until - $3::bigint) DESC, until, contest.created_at
  LIMIT $1 FOR UPDATE OF contest SKIP LOCKED
) RETURNING payment`;

/** Creates the store of contests and their permanent answers. */
export function createContestStore(pool: pg.Pool): ContestStore {
  const enter = createPresence(pool);
  return {
    enter,

    async window(payment) {
      const { rows } = await pool.query<TaskColumns & WindowColumns>(
        `SELECT task.*, seconds, until, conditions, promised, delivered, block
         FROM escrow_window JOIN escrow_task AS task USING (payment) WHERE payment = $1`,
        [bytes(payment)],
      );
      const [row] = rows;
      if (row === undefined) return null;
      const { network, contract, info, state, contestUntil } = parseTask(row);
      const { seconds, until, conditions, promised, delivered } = row;
      const hold = { network, contract, id: payment, info };
      const block = row.block === null ? null : Number(row.block);
      const isWaiting = state === "open" && contestUntil !== null;
      return { hold, seconds, until: Number(until), conditions, promised, delivered, block, isWaiting };
    },

    async contest(payment) {
      const { rows } = await pool.query<ContestColumns>(
        "SELECT claim, claim_sha256, signature, made_at FROM escrow_contest WHERE payment = $1",
        [bytes(payment)],
      );
      const [row] = rows;
      if (row === undefined) return null;
      const answer = await readAnswer(pool, payment);
      const { claim, claim_sha256, signature, made_at } = row;
      const posted = { claim, claimSha256: hex(claim_sha256), signature: hex(signature), madeAt: Number(made_at) };
      return { payment, ...posted, answer };
    },

    open: ({ payment, claim, claimSha256, signature, madeAt }, owner) =>
      inTransaction(pool, async (client) => {
        const task = await locked(client, payment);
        const { rowCount: known } = await client.query("SELECT FROM escrow_contest WHERE payment = $1", [
          bytes(payment),
        ]);
        if (known !== 0) return "taken";
        if (task === null || madeAt >= task.until) return "over";
        await client.query(
          `INSERT INTO escrow_contest (payment, merchant, claim, claim_sha256, signature, made_at, next_attempt_at, owner)
           VALUES ($1, $2, $3, $4, $5, $6, now() + ${TAKEN}, $7)`,
          [bytes(payment), task.merchant, JSON.stringify(claim), bytes(claimSha256), bytes(signature), madeAt, owner],
        );
        return "opened";
      }),

    async areDue() {
      return (await pool.query<{ due: boolean }>(named(ARE_DUE, []))).rows[0]?.due === true;
    },

    async take(limit, owner, time) {
      const { rows } = await pool.query<{ payment: Buffer }>(named(TAKE, [limit, owner, time]));
      return rows.map(({ payment }) => hex(payment));
    },

    async lookAgain(payment, seconds) {
      await pool.query(
        "UPDATE escrow_contest SET next_attempt_at = now() + make_interval(secs => $2), owner = NULL WHERE payment = $1 AND is_open",
        [bytes(payment), seconds],
      );
    },

    answer: (payment, sign) =>
      inTransaction(pool, async (client) => {
        const task = await locked(client, payment);
        // Only one process answers. A second one waits here and finds the first answer.
        await client.query("SELECT FROM escrow_contest WHERE payment = $1 FOR UPDATE", [bytes(payment)]);
        const earlier = await readAnswer(client, payment);
        if (earlier !== null) return earlier;
        const { gas, ...answer } = await sign(task !== null);
        await client.query("UPDATE escrow_contest SET is_open = false WHERE payment = $1", [bytes(payment)]);
        await client.query(
          "INSERT INTO escrow_contest_answer (payment, decision, rule, record, document) VALUES ($1, $2, $3, $4, $5)",
          [bytes(payment), answer.decision, answer.rule, bytes(answer.record), answer.document],
        );
        if (task === null) return answer;
        await client.query(CARRIED_OUT[answer.decision], [
          bytes(payment),
          ...(answer.decision === "refund" ? [bytes(answer.record)] : []),
        ]);
        await giveBack(client, bytes(payment), gas);
        return answer;
      }),
  };
}

/** Carries out an answer: the window no longer delays the outcome. */
const CARRIED_OUT: Readonly<Record<Decision, string>> = {
  refund: `UPDATE escrow_task SET decision = 'refund', record = $2, gas = 0, contest_until = NULL, next_attempt_at = now() WHERE payment = $1`,
  release: "UPDATE escrow_task SET contest_until = NULL, next_attempt_at = now() WHERE payment = $1",
};

async function locked(client: pg.PoolClient, payment: Hex) {
  const { rows } = await client.query<{ contest_until: string; merchant: Buffer }>(WAITING, [bytes(payment)]);
  const [row] = rows;
  return row === undefined ? null : { until: Number(row.contest_until), merchant: row.merchant };
}

async function readAnswer(client: Pick<pg.PoolClient, "query">, payment: Hex): Promise<ContestAnswer | null> {
  const { rows } = await client.query<AnswerColumns>(ANSWER, [bytes(payment)]);
  const [row] = rows;
  return row === undefined ? null : { ...row, record: hex(row.record) };
}

/** The contest that the payer of a delivered payment may make. */
export interface ContestWindow {
  readonly seconds: number;
  /** Unix seconds of the chain. */
  readonly until: number;
  /** As bound by the payer's terms. */
  readonly conditions: Readonly<Record<string, unknown>>;
  readonly promised: Promised;
  readonly delivered: SignedDelivery;
  /** The block of the evaluation; null for the head. */
  readonly block: number | null;
}

/** A stored window of a payment whose release waits or waited for it. */
export interface OpenedWindow extends ContestWindow {
  readonly hold: Pick<Hold, "network" | "contract" | "id" | "info">;
  /** Whether the release still waits for it. */
  readonly isWaiting: boolean;
}

/** A payer's contest, which is final. */
export interface Contest {
  readonly payment: Hex;
  readonly claim: ContestClaim;
  readonly claimSha256: Hex;
  readonly signature: Hex;
  /** Unix seconds of the chain. */
  readonly madeAt: number;
}

/** The permanent answer to a contest. */
export interface ContestAnswer {
  readonly decision: Decision;
  readonly rule: string;
  readonly record: Hex;
  /** The signed document, byte for byte. */
  readonly document: string;
}

/** A window and its contest. */
export interface ContestView {
  readonly window: OpenedWindow;
  readonly contest: (Contest & { readonly answer: ContestAnswer | null }) | null;
}

/** A process that answers contests. When it is gone, others answer the ones it had taken. */
export interface Present {
  readonly owner: number;
  leave(): void;
}

export interface ContestStore {
  enter(): Promise<Present>;
  window(payment: Hex): Promise<OpenedWindow | null>;
  contest(payment: Hex): Promise<(Contest & { readonly answer: ContestAnswer | null }) | null>;
  /**
   * Stores a contest if the release still waits at that time of the chain. Its owner may answer it for a minute.
   * `taken`: there is one already. `over`: the window is closed.
   */
  open(contest: Contest, owner: Present["owner"]): Promise<"opened" | "taken" | "over">;
  /** Returns whether an open contest has no owner. */
  areDue(): Promise<boolean>;
  /**
   * Claims open contests for a minute each, including those whose owner is gone, ordered by value divided by the time
   * until their windows end, which counts as at least a minute, and then by that time.
   * @param time of the chain, in Unix seconds
   */
  take(limit: number, owner: Present["owner"], time: number): Promise<readonly Hex[]>;
  /** Makes an open contest due again after this many seconds. */
  lookAgain(payment: Hex, seconds: number): Promise<void>;
  /**
   * Stores the first answer and carries it out, in one transaction: the release no longer waits, or becomes a refund.
   * The gas is credited to the payer's account. Returns the stored answer.
   * @param sign creates the answer; `isOpen` is whether the release still waits
   */
  answer(
    payment: Hex,
    sign: (isOpen: boolean) => Promise<ContestAnswer & { readonly gas: bigint }>,
  ): Promise<ContestAnswer>;
}
