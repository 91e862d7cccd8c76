import type { HttpBindings } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import type { Context } from "hono";
import { WINDOW_MARGIN_SECONDS } from "../platform/chain/authorization.ts";
import { Problem, problemBody } from "../platform/http/errors.ts";
import type { Loss } from "../platform/http/route.ts";
import { NETWORKS, type Network } from "../platform/networks.ts";
import type { Hex } from "../platform/wallet.ts";
import { toBase64Json } from "./header.ts";
import type { PresentedPayment } from "./scheme.ts";
import type { Answer, Reason, Row, Run } from "./step-types.ts";

/** The waits after which a client sends the same header again. */
export const WAIT = {
  held: { type: "wait", charged: false, because: "held" },
  heldCharged: { type: "wait", charged: true, because: "held" },
  crowded: { type: "wait", charged: false, because: "crowded" },
  "no place": { type: "wait", charged: false, because: "no place" },
  "gas lost": { type: "wait", charged: false, because: "gas lost" },
  "no signer": { type: "wait", charged: false, because: "no signer" },
  unsettled: { type: "wait", charged: false, because: "unsettled" },
  unavailable: { type: "wait", charged: false, because: "unavailable" },
  unavailableCharged: { type: "wait", charged: true, because: "unavailable" },
  failed: { type: "wait", charged: true, because: "failed" },
} as const satisfies Record<string, Answer>;

/** Why a payment is void, as its client reads it. */
export const VOID_ERRORS: Readonly<Record<Reason, string>> = {
  refused: "The token contract refused this authorization; it will not be submitted again. Sign a new one.",
  expired: "This authorization expired before it settled, so it can never settle. Sign a new one.",
  nonce_consumed: "This authorization's nonce was canceled or spent elsewhere. Sign a new one.",
  reverted:
    "The transaction with this authorization was mined and reverted, so we never submit it again. Sign a new one. Its signature is public until validBefore: should it settle after all, this same header still gets its result.",
  reversed: "This authorization's settlement was permanently removed from the chain. Sign a new one.",
  bait: "This authorization will never be submitted. Sign a new one.",
};

export const WINDOW_ERROR = `Less than ${WINDOW_MARGIN_SECONDS} seconds remain until validBefore, so this authorization will not be submitted. Sign a new one.`;

/** The wait for a chain or journal that did not answer. It reports the charge if one is known. */
export const unavailable = ({ row, settlement }: Run): Answer =>
  settlement !== null || row?.state === "settled" ? WAIT.unavailableCharged : WAIT.unavailable;

/** The stored answer of a fulfilled payment. */
export const result = (row: Row, replay: boolean): Answer => {
  if (row.response === null) throw new Error("a fulfilled payment has a stored response");
  return { type: "result", response: row.response, settlement: row.settlement, replay };
};

/** A payment that was accepted, and whose client does not know yet that it has settled. */
export interface Pending {
  readonly payment: PresentedPayment;
  readonly network: Network;
  /** Null if it is not known, or may still change. */
  readonly transaction: Hex | null;
  readonly message: string;
}

/**
 * The headers with x402's own code for a pending payment, `settlement_pending`. It is not a refusal, so a client that
 * reads it sends the same payment again. (x402, settlement response; its stock server expects the code from
 * facilitators in the same form.)
 */
export function settlementPending({
  payment,
  network,
  transaction,
  message,
}: Pending): Readonly<Record<string, string>> {
  const isOld = payment.version === "v1";
  const header = toBase64Json({
    success: false,
    errorReason: "settlement_pending",
    errorMessage: message,
    transaction: transaction ?? "",
    network: isOld ? NETWORKS[network].key : network,
    payer: payment.authorization.from,
  });
  return { "payment-response": header, ...(isOld ? { "x-payment-response": header } : {}) };
}

const RETRY_AFTER_SECONDS = "2";
const SETTLED =
  "The payment has settled, but its result is not ready yet. Do not sign again; send the same header again.";

/** A payment whose response exists but is withheld from the client. */
interface Unsent {
  readonly payment: PresentedPayment;
  readonly network: Network;
  readonly answer: Extract<Answer, { type: "result" }>;
}

/** Simulates the loss of a response, as a bad connection or a busy or broken server would cause it. */
export function lose(c: Context, loss: Loss, { payment, network, answer }: Unsent): Response {
  switch (loss) {
    case "connection_closed":
      return hangUp(c);
    case "unavailable":
      throw pending();
    case "settlement_pending":
      throw pending(
        settlementPending({ payment, network, transaction: answer.settlement?.transaction ?? null, message: SETTLED }),
      );
    case "server_error":
      // Not thrown, because it is not a failure of ours and must not raise an alarm.
      return c.body(JSON.stringify(problemBody("internal_error", BROKEN, c.get("requestId"))), 500, {
        "content-type": "application/problem+json",
        "cache-control": "no-store",
      });
    default:
      return loss satisfies never;
  }
}

const BROKEN = { detail: "Something went wrong. If the request was paid, send it again unchanged. Nothing is lost." };

const pending = (headers: Readonly<Record<string, string>> = {}) =>
  new Problem("payment_pending", { detail: SETTLED, headers: { "retry-after": RETRY_AFTER_SECONDS, ...headers } });

/** Closes the connection without a response. A proxy in front turns that into a 502. */
function hangUp(c: Context): Response {
  const { outgoing } = (c.env ?? {}) as Partial<HttpBindings>;
  if (outgoing === undefined) throw pending();
  outgoing.destroy();
  return RESPONSE_ALREADY_SENT;
}
