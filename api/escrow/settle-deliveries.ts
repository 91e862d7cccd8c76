import { NETWORKS } from "../kernel/networks.ts";
import type { Hex } from "../kernel/wallet.ts";
import type { EscrowContract } from "../payments/escrowed/contract.ts";
import type { Signer } from "../signing/document.ts";
import { type Carrying, type CarryingParts, createCarrying } from "./carry-outcomes.ts";
import { decodeContent } from "./decode-content.ts";
import { deliveryDigest, deliveryOf, type Forward } from "./delivery.ts";
import type { Answered, EscrowChain, EscrowStore, Evaluation } from "./escrow-ports.ts";
import { evaluate } from "./evaluation.ts";
import { gasBeyondFee } from "./limits.ts";
import { type Hold, paymentId } from "./payment.ts";
import { evaluationPath, evaluationRecord, recordHash } from "./record.ts";
import { createKeeper, type KeeperParts } from "./refund-overdue.ts";

/** The time a release needs to be mined; a later one would revert, and its payment would never end. */
const RELEASE_WITHIN_SECONDS = 60;

export interface EscrowParts extends CarryingParts, KeeperParts {
  readonly contracts: readonly EscrowContract[];
  readonly store: EscrowStore;
  readonly chain: EscrowChain;
  readonly signer: Signer;
  readonly baseUrl: string;
  readonly now: () => Date;
}

/** What the chain is told of a refund that says nothing about the merchant: the index counts only those with a record. */
const NO_RECORD: Hex = `0x${"00".repeat(32)}`;

/** Why a forwarded delivery is not evaluated; no money moves. */
export type Refusal =
  | "unknown_payment"
  | "not_signed"
  | "wrong_signer"
  | "already_refunded"
  | "expired"
  | "below_minimum"
  | "gas_spent";

export interface Escrow extends Carrying {
  /** Evaluates a merchant's delivery once. The first evaluation of a payment is final; repeats get the same one. */
  verify(forward: Forward): Promise<Answered | { readonly refused: Refusal }>;
  evaluation(payment: Hex): Promise<Answered | null>;
  /** Refunds what was not decided within 30 minutes; returns how many holds it took up. */
  refundOverdue(): Promise<number>;
}

type Terms = Pick<Hold, "network" | "contract" | "id" | "info">;

export function createEscrow(parts: EscrowParts): Escrow {
  const { store, chain, limits } = parts;
  const answered = async (evaluation: Evaluation): Promise<Answered> => {
    const task = await store.task(evaluation.payment);
    if (task === null || task.state === "open") return { evaluation, status: "pending", transaction: null };
    // Anyone may have refunded before the release was mined. Until that is final it may still be undone.
    if (task.state === "mined" && task.found !== task.decision)
      return { evaluation, status: "pending", transaction: null };
    return { evaluation, status: OUTCOMES[task.decision], transaction: task.transaction };
  };
  return {
    ...createCarrying(parts),
    refundOverdue: createKeeper(parts),

    async verify(forward) {
      // An unsigned forward costs no look at the chain.
      if (forward.signature === undefined) return { refused: "not_signed" };
      const { signature } = forward;
      const delivery = deliveryOf(forward);
      const isSigned = (hold: Terms) => chain.isSigned(hold.info.receiver, deliveryDigest(hold, delivery), signature);
      // Terms in the body are checked before anything is looked up.
      const named = namedIn(parts, forward);
      if (named !== null && !(await isSigned(named))) return { refused: "wrong_signer" };
      const hold = await findHold(parts, forward);
      if (hold === null) return { refused: "unknown_payment" };
      if (named === null && !(await isSigned(hold))) return { refused: "wrong_signer" };
      const known = await store.evaluation(hold.id);
      if (known !== null) return answered(known);
      if (hold.info.maxAmount < limits.minimum) return { refused: "below_minimum" };
      const refused = await tooLate(parts, hold);
      if (refused === null) {
        const { version, status, contentType } = delivery;
        const rule = evaluate(version, { status, contentType, body: await decodeContent(delivery) });
        const evaluation = signed(parts, { hold, delivery, rule });
        const cost = { gas: gasBeyondFee(evaluation.decision, hold.info.maxAmount), most: limits.merchantGas };
        const told = rule.counts ? evaluation.record : NO_RECORD;
        const became = await store.decide(hold, evaluation, { ...cost, told });
        if (became === "stored") return answered(evaluation);
        if (became === "spent") return { refused: "gas_spent" };
      }
      // A concurrent request may have decided, and even ended the hold: its evaluation is this request's too.
      const first = await store.evaluation(hold.id);
      return first === null ? { refused: refused ?? "already_refunded" } : answered(first);
    },

    async evaluation(payment) {
      const evaluation = await store.evaluation(payment);
      return evaluation === null ? null : answered(evaluation);
    },
  };
}

async function findHold(parts: EscrowParts, forward: Forward): Promise<Hold | null> {
  const hold = await readHold(parts, forward);
  const [current, ...earlier] = parts.contracts;
  const contract = [current, ...earlier].find((candidate) => candidate?.address === hold?.contract);
  // An earlier contract with another arbiter does not accept our decisions: only the clock ends what it holds.
  return contract?.arbiter === current?.arbiter ? hold : null;
}

async function readHold(parts: EscrowParts, forward: Forward): Promise<Hold | null> {
  const { payment_id, transaction } = forward;
  if (transaction !== undefined) return parts.chain.holdByTransaction(transaction);
  const id = payment_id ?? namedIn(parts, forward)?.id;
  return id === undefined ? null : parts.chain.holdById(id);
}

/** What the terms in a forwarded body say, held or not; null without them, or for no contract of ours. */
function namedIn({ contracts }: Pick<EscrowParts, "contracts">, { paymentInfo: info }: Forward): Terms | null {
  const contract = contracts.find(({ address }) => address === info?.operator);
  if (contract === undefined || info === undefined) return null;
  const { network, address, custody } = contract;
  return { network, contract: address, info, id: paymentId(info, NETWORKS[network].chainId, custody) };
}

/** Why a delivery that has no evaluation yet is too late, or too early for this node; null if it is neither. */
async function tooLate({ chain, store }: EscrowParts, { contract, id, info }: Hold): Promise<Refusal | null> {
  if ((await store.task(id)) !== null) return "already_refunded";
  const { status, time } = await chain.state({ contract, payment: id });
  if (status === "none") return "unknown_payment";
  if (status !== "held") return "already_refunded";
  return time + RELEASE_WITHIN_SECONDS >= info.authorizationExpiry ? "expired" : null;
}

function signed({ signer, baseUrl, now }: EscrowParts, found: Parameters<typeof evaluationRecord>[0]): Evaluation {
  const at = now();
  const url = `${baseUrl}${evaluationPath(found.hold.id)}`;
  const document = signer.sign(evaluationRecord(found, { issuer: signer.issuer, url, now: at }), at);
  return {
    payment: found.hold.id,
    decision: found.rule.decision,
    rule: found.rule.id,
    record: recordHash(document),
    document: JSON.stringify(document),
  };
}

const OUTCOMES = { release: "released", refund: "refunded" } as const;
