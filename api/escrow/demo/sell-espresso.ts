import type { PresentedPayment } from "../../../packages/escrow/src/payment-header.ts";
import type { Offer } from "../../../packages/escrow/src/terms.ts";
import { NETWORKS } from "../../kernel/networks.ts";
import type { Address, Hex } from "../../kernel/wallet.ts";
import { deliveryDigest } from "../delivery.ts";
import type { Answered, EscrowChain, EscrowContract, EscrowSender } from "../escrow-ports.ts";
import { type Hold, type PaymentInfo, paymentId } from "../payment.ts";
import { evaluationPath } from "../record.ts";
import type { Escrow } from "../settle-deliveries.ts";
import { demoOffer, espresso } from "./offer.ts";

const HELD_WITHIN_MS = 20_000;
const RELEASED_WITHIN_MS = 20_000;
const PAUSE_MS = 150;

export interface DemoParts {
  readonly contract: EscrowContract | null;
  readonly chain: EscrowChain;
  readonly sender: EscrowSender;
  readonly escrow: Escrow;
  /** The demo's merchant: a wallet of ours, and not the one that fees and payments go to. */
  readonly merchant: { readonly address: Address; sign(digest: Hex): Promise<Hex> };
  readonly baseUrl: string;
  readonly now: () => Date;
  readonly sleep: (ms: number) => Promise<void>;
  /** Milliseconds from a moment in the past; never runs backwards. */
  readonly elapsedMs: () => number;
  readonly log: { debug(facts: object, message: string): void };
}

export type DemoOutcome =
  | { readonly say: "served"; readonly replay: boolean; readonly hold: Hold; readonly body: object }
  | { readonly say: "pay"; readonly error: string }
  | { readonly say: "wait"; readonly detail: string };

type Unserved = Exclude<DemoOutcome, { say: "served" }>;

export interface Demo {
  /** Null where no contract is configured. */
  readonly offer: Offer | null;
  /** Holds, serves, has itself evaluated, and answers once the release is mined. The chain is its journal: a retry goes on. */
  buy(payment: PresentedPayment): Promise<DemoOutcome>;
}

export function createDemo(parts: DemoParts): Demo {
  const { contract, merchant } = parts;
  return {
    offer: contract === null ? null : demoOffer(contract, merchant.address),
    async buy({ info, signature }) {
      if (contract === null) throw new Error("the demo has no contract");
      const terms = lower(info);
      const id = paymentId(terms, NETWORKS[contract.network].chainId, contract.address);
      const status = await parts.chain.status({ contract: contract.address, payment: id }, "latest");
      if (status === "refunded") return { say: "pay", error: "This payment was refunded. Sign a new one." };
      const replay = status === "released";
      const held = await timed(parts, "hold", hold(parts, contract, { id, info: terms, signature }));
      if ("say" in held) return held;
      const answered = await timed(parts, "evaluate", deliver(parts, held));
      if ("say" in answered) return answered;
      const done = await timed(parts, "release", untilReleased(parts, answered));
      return { say: "served", replay, hold: held, body: served(parts, held, done) };
    },
  };
}

async function timed<T>({ log, elapsedMs }: DemoParts, step: string, work: Promise<T>): Promise<T> {
  const started = elapsedMs();
  const result = await work;
  log.debug({ step, ms: elapsedMs() - started }, "escrow demo");
  return result;
}

const lower = (info: PaymentInfo): PaymentInfo => {
  const small = (address: Address) => address.toLowerCase() as Address;
  const { operator, payer, receiver, token, feeReceiver } = info;
  return {
    ...info,
    operator: small(operator),
    payer: small(payer),
    receiver: small(receiver),
    token: small(token),
    feeReceiver: small(feeReceiver),
  };
};

interface Wanted {
  readonly id: Hex;
  readonly info: PaymentInfo;
  readonly signature: Hex;
}

/** The hold of this payment, made when it is not there yet. Copies of a header may both try: the contract takes one. */
async function hold(parts: DemoParts, contract: EscrowContract, wanted: Wanted): Promise<Hold | Unserved> {
  const { chain, sender, sleep, now } = parts;
  const isThere = async () =>
    (await chain.status({ contract: contract.address, payment: wanted.id }, "latest")) !== "none";
  if (!(await isThere())) {
    const refused = await chain.holdRefusal(contract.address, wanted.info, wanted.signature);
    if (refused !== null && !(await isThere())) return { say: "pay", error: refused };
    if (refused === null && !(await isSent(sender, contract, wanted)) && !(await isThere())) return NOT_SENT;
  }
  for (const deadline = now().getTime() + HELD_WITHIN_MS; now().getTime() < deadline; await sleep(PAUSE_MS)) {
    const found = await chain.holdById(wanted.id);
    if (found !== null) return found;
  }
  return NOT_MINED;
}

async function isSent(
  sender: EscrowSender,
  { address }: EscrowContract,
  { info, signature }: Wanted,
): Promise<boolean> {
  try {
    await sender.waitFor(await sender.authorize(address, info, signature), HELD_WITHIN_MS);
    return true;
  } catch {
    return false;
  }
}

const AGAIN = "Do not sign again; send the same header again.";
const NOT_SENT = { say: "wait", detail: `The hold could not be sent at the moment. ${AGAIN}` } as const;
const NOT_MINED = { say: "wait", detail: `The hold is sent and not mined yet. ${AGAIN}` } as const;

/** The espresso goes the way of every merchant's delivery: signed, forwarded, evaluated by the published rules. */
async function deliver({ escrow, merchant }: DemoParts, held: Hold): Promise<Answered | { say: "pay"; error: string }> {
  const body = JSON.stringify(espresso(held.id));
  const delivery = { status: 200, contentType: "application/json", body: Buffer.from(body) };
  const digest = deliveryDigest(NETWORKS[held.network], held.contract, held.id, delivery);
  const answered = await escrow.verify({
    payment_id: held.id,
    response: { status: 200, headers: { "content-type": "application/json" }, body },
    signature: await merchant.sign(digest),
  });
  if (!("refused" in answered)) return answered;
  return { say: "pay", error: "This payment was refunded before it was delivered. Sign a new one." };
}

async function untilReleased({ escrow, sleep, now }: DemoParts, first: Answered): Promise<Answered> {
  let latest = first;
  for (const deadline = now().getTime() + RELEASED_WITHIN_MS; now().getTime() < deadline; await sleep(PAUSE_MS)) {
    if (latest.status !== "pending") return latest;
    latest = (await escrow.evaluation(first.evaluation.payment)) ?? latest;
  }
  return latest;
}

const served = ({ baseUrl }: DemoParts, held: Hold, { evaluation, status, transaction }: Answered) => ({
  ...espresso(held.id),
  escrow: {
    payment_id: held.id,
    contract: held.contract,
    network: held.network,
    status,
    hold: { transaction: held.transaction, block: held.block },
    evaluation: {
      decision: evaluation.decision,
      rule: evaluation.rule,
      record: evaluation.record,
      record_url: `${baseUrl}${evaluationPath(evaluation.payment)}`,
    },
    release: { transaction },
  },
});
