import { randomBytes } from "node:crypto";
import type { Journal, NewPayment } from "../../../api/payments/journal.ts";
import type { State, Write } from "../../../api/payments/step-types.ts";
import type { Settlement } from "../../../api/platform/chain/view.ts";
import type { Statement } from "../../../api/platform/db/connection.ts";
import { answered, jsonAnswer } from "../../../api/platform/http/answer.ts";
import { NETWORKS } from "../../../api/platform/networks.ts";
import { PAY_TO } from "../service/accounts.ts";

/** Payments as they enter the journal, and every change a run can want to make to one. */

export const hex = (length: number) => `0x${randomBytes(length).toString("hex")}` as const;

export const newPayment = ({
  payer = hex(20),
  ...more
}: Partial<NewPayment> & { readonly payer?: `0x${string}` } = {}): NewPayment => ({
  key: { network: "eip155:8453", asset: NETWORKS["eip155:8453"].usdc.address, payer, nonce: hex(32) },
  scheme: "exact",
  details: null,
  paymentId: null,
  digest: hex(32),
  signature: hex(65),
  validAfter: 0n,
  validBefore: 4_000_000_000n,
  route: "test.basic",
  fingerprint: randomBytes(32),
  input: null,
  payTo: PAY_TO,
  value: 250_000n,
  version: "v2",
  headBlock: 1,
  receivedAt: new Date(),
  ...more,
});

const settlement: Settlement = { transaction: hex(32), block: 7, blockHash: hex(32), logIndex: 1 };
export const WRITES = {
  refuse: { do: "write", from: ["received"], to: "void", reason: "refused" },
  leave: { do: "write", from: ["received"], to: "settling" },
  settle: { do: "write", from: ["settling", "settled"], to: "settled", settlement },
  goBack: { do: "write", from: ["settled"], to: "settling" },
  expire: { do: "write", from: ["settling", "settled"], to: "void", reason: "expired" },
  finish: { do: "write", from: ["fulfilled"], to: "fulfilled", settlement, final: true },
  reverse: { do: "write", from: ["fulfilled"], to: "void", reason: "reversed" },
} as const satisfies Record<string, Write>;
export const COMPLETE = { do: "complete", from: ["settled"], settlement: null } as const;
/** A sale that is made at once: its settlement is stored with it. */
const COMPLETE_AT_ONCE = { do: "complete", from: ["settling", "settled"], settlement } as const;
export const CHANGES = { ...WRITES, fulfil: COMPLETE, fulfilAtOnce: COMPLETE_AT_ONCE } as const;
type Change = Write | typeof COMPLETE | typeof COMPLETE_AT_ONCE;
export const PATHS: Record<State, readonly Change[]> = {
  received: [],
  settling: [WRITES.leave],
  settled: [WRITES.leave, WRITES.settle],
  fulfilled: [WRITES.leave, WRITES.settle, COMPLETE],
  void: [WRITES.refuse],
};
export const STATES = Object.keys(PATHS) as State[];

interface Applied {
  readonly change: Change;
  /** What a completed sale stores besides. */
  readonly writes?: readonly Statement[];
}

/** Makes a change under a token; returns how many rows it changed. */
export async function apply(
  by: Journal,
  { token, ...payment }: NewPayment & { readonly token: string },
  { change, writes = [] }: Applied,
): Promise<number> {
  const { key } = payment;
  if (change.do === "write") return by.write(key, token, isLeaving(change) ? { ...change, kept: payment } : change);
  const completion = answered(jsonAnswer({}), writes);
  return (await by.complete(key, token, { completion, settlement: change.settlement })) === null ? 0 : 1;
}
/** The write before the signature leaves the process: what finishes the payment is stored with it. */
export const isLeaving = ({ from, to }: Write): boolean => to === "settling" && from.includes("received");
