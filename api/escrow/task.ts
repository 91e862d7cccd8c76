import type { Task } from "./escrow-ports.ts";
import type { Decision } from "./evaluation.ts";
import type { PaymentInfo } from "./payment.ts";
import { networkOfChain } from "../platform/networks.ts";
import { hex } from "../platform/db/connection.ts";

/** A release that waits for its window; locked by everything that changes its outcome: a contest, its answer, and the window's end. */
export const WAITING = `SELECT contest_until, merchant FROM escrow_task
  WHERE payment = $1 AND state = 'open' AND decision = 'release' AND contest_until IS NOT NULL FOR UPDATE`;

/** A row of `escrow_task`, as far as it is read. */
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
