import { paymentId } from "../../../packages/escrow/src/payment-info.ts";
import { currentOf, type EscrowContract, type EscrowSchemeId, paymentInfoOf, schemesIn } from "../../payments/index.ts";
import { type Completion, answered as completed, jsonAnswer } from "../../platform/http/answer.ts";
import { PROBLEMS, problemBody } from "../../platform/http/errors.ts";
import type { Sale } from "../../platform/http/route.ts";
import { NETWORKS } from "../../platform/networks.ts";
import type { Address, Hex } from "../../platform/wallet.ts";
import type { Notices } from "../carry-outcomes.ts";
import type { EscrowChain, HoldEnd } from "../chain.ts";
import { deliveryDigest } from "../delivery.ts";
import type { Answered } from "../record.ts";
import { evaluationPath } from "../record.ts";
import type { Escrow } from "../settle-deliveries.ts";

/** Atomic USDC. */
export const DEMO_PRICE = 100_000n;
export const DEMO_PATH = "/escrow/demo";
export const DEMO_DESCRIPTION = "An escrow-protected espresso: held, served, evaluated and released, all on-chain.";

const CUP = ["   ( (", "    ) )", "  ........", "  |      |]", "  \\      /", "   `----'"].join("\n");

/** Returns the espresso, which is always the same for the same payment. */
export const espresso = (payment: string) => ({ item: "espresso", order: payment.slice(2, 10), art: CUP });

const SEEN_WITHIN_MS = 10_000;
const RELEASED_WITHIN_MS = 20_000;
/** An order served before its release is mined must not be refundable before that. */
const LEAST_SECONDS_TO_RELEASE = 60;
const PAUSE_MS = 150;
/** Another process may carry the release, so this one polls at this interval. */
const LOOK_EVERY_MS = 1_000;

export interface DemoParts {
  /** Empty if none is configured. */
  readonly contracts: readonly EscrowContract[];
  readonly escrow: Escrow;
  readonly chain: Pick<EscrowChain, "state">;
  /** The demo's merchant: one of our wallets, but not the one that receives fees and payments. */
  readonly merchant: { readonly address: Address; sign(digest: Hex): Promise<Hex> };
  readonly baseUrl: string;
  /** Returns milliseconds from a monotonic clock. */
  readonly elapsedMs: () => number;
  readonly sleep: (ms: number) => Promise<void>;
  readonly ended: Notices["ended"];
}

export interface Demo {
  /**
   * The schemes it can be paid with, preferred first, and the contract that then holds sales. Empty while the demo is
   * closed.
   */
  readonly offers: readonly { readonly scheme: EscrowSchemeId; readonly contract: EscrowContract }[];
  readonly merchant: Address;
  /** Serves the order of a held payment, has it evaluated, and answers once the release is mined. */
  sell(sale: Sale<unknown>): Promise<Completion>;
}

/** A payment held by the contract. */
interface Held {
  readonly payment: Hex;
  readonly contract: Address;
  readonly sale: Sale<unknown>;
}

export const createDemo = (parts: DemoParts): Demo => ({
  offers: schemesIn(parts.contracts).flatMap((scheme) => {
    const contract = currentOf(parts.contracts, scheme);
    return contract === undefined ? [] : [{ scheme, contract }];
  }),
  merchant: parts.merchant.address,
  async sell(sale) {
    const info = paymentInfoOf(sale.details);
    const contract = info.operator;
    const custody = parts.contracts.find(({ address }) => address === contract)?.custody;
    if (custody === undefined) throw new Error(`${contract} is no longer among ESCROW_ADDRESSES`);
    const payment = paymentId({ chainId: NETWORKS[sale.payment.network].chainId, escrow: custody }, info);
    const held = { payment, contract, sale };
    const watching = new AbortController();
    try {
      // Started before the delivery, so that nothing is missed.
      const isOver = parts.ended(payment, watching.signal);
      const answered = await deliver(parts, held);
      if (answered === "refunded") return refunded(payment);
      const released = await untilReleased(parts, answered, { isOver, watching: watching.signal, signal: sale.signal });
      return await handOver(parts, held, released);
    } finally {
      watching.abort();
    }
  },
});

/** The espresso is handled like any merchant's delivery: signed, forwarded, and evaluated by the published rules. */
async function deliver(parts: DemoParts, { payment, contract, sale }: Held): Promise<Answered | "refunded"> {
  const { escrow, merchant, elapsedMs, sleep } = parts;
  const body = JSON.stringify(espresso(payment));
  const facts = {
    status: 200,
    contentType: "application/json",
    contentEncoding: null,
    contest: null,
  } as const;
  const delivery = { ...facts, body: Buffer.from(body) };
  const digest = deliveryDigest({ network: sale.payment.network, contract, id: payment }, delivery);
  const forward = {
    payment_id: payment,
    response: { status: 200, headers: { "content-type": "application/json" }, body },
    signature: await merchant.sign(digest),
  };
  // This node may lag behind the one that showed the hold.
  for (const deadline = elapsedMs() + SEEN_WITHIN_MS; ; await sleep(PAUSE_MS)) {
    sale.signal.throwIfAborted();
    const answered = await escrow.verify(forward);
    if (!("refused" in answered)) return answered;
    if (answered.refused === "already_refunded" || answered.refused === "expired") return "refunded";
    if (answered.refused !== "unknown_payment" || elapsedMs() >= deadline)
      throw new Error(`the delivery of the escrowed payment ${payment} was refused: ${answered.refused}`);
  }
}

/** The buyer gets goods or a refund, never both: while the payment may be refunded, the sale is retried later. */
async function handOver(parts: DemoParts, held: Held, answered: Answered): Promise<Completion> {
  const { payment, contract } = held;
  if (answered.status === "refunded") return refunded(payment);
  if (answered.status === "pending") {
    const { status, refundableFrom, time } = await parts.chain.state({ contract, payment });
    if (status === "refunded") return refunded(payment);
    if (status === "none" || (status === "held" && time + LEAST_SECONDS_TO_RELEASE > refundableFrom))
      throw new Error(`the escrowed payment ${payment} may still be refunded, so its order is not served yet`);
  }
  return completed(jsonAnswer(served(parts, held, answered)));
}

/** It was not served in time, so the payment was refunded. */
function refunded(payment: Hex): Completion {
  const detail = "This payment was refunded in full before the order was served. Sign a new one.";
  const { status } = PROBLEMS.escrow_over;
  return completed(jsonAnswer(problemBody("escrow_over", { detail }, payment), { status }));
}

interface Watching {
  /** The end of the hold, as soon as this process has stored it. */
  readonly isOver: Promise<HoldEnd | null>;
  readonly watching: AbortSignal;
  /** The sale's signal. */
  readonly signal: AbortSignal;
}

async function untilReleased(
  { escrow, ended, sleep, elapsedMs }: DemoParts,
  first: Answered,
  { isOver, watching, signal }: Watching,
): Promise<Answered> {
  const { payment } = first.evaluation;
  let latest = first;
  let over = isOver;
  for (const deadline = elapsedMs() + RELEASED_WITHIN_MS; elapsedMs() < deadline; ) {
    signal.throwIfAborted();
    if (latest.status !== "pending") return latest;
    const outcome = await Promise.race([over, sleep(LOOK_EVERY_MS)]);
    if (outcome?.decision === latest.evaluation.decision) return endedBy(latest, outcome);
    over = ended(payment, watching);
    latest = (await escrow.evaluation(payment)) ?? latest;
  }
  return latest;
}

/** Returns the answer with the decided outcome, without asking the store. */
const endedBy = ({ evaluation, contest }: Answered, { decision, transaction }: HoldEnd): Answered => ({
  evaluation,
  contest,
  status: decision === "release" ? "released" : "refunded",
  transaction,
});

function served({ baseUrl }: DemoParts, held: Held, { evaluation, status, transaction }: Answered) {
  const { payment, settlement } = held.sale;
  return {
    ...espresso(held.payment),
    escrow: {
      payment_id: held.payment,
      contract: held.contract,
      network: payment.network,
      status,
      hold: { transaction: settlement.transaction, block: settlement.block },
      evaluation: {
        decision: evaluation.decision,
        rule: evaluation.rule,
        record: evaluation.record,
        record_url: `${baseUrl}${evaluationPath(evaluation.payment)}`,
      },
      release: { transaction },
    },
  };
}
