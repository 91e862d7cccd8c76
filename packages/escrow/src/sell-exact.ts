import { encodeAbiParameters, type Hex, keccak256 } from "viem";
import { type Delivery, readDelivery } from "./delivery.ts";
import { type ExactPayment, tooLate } from "./exact-terms.ts";
import { claimDelivery, whileLeased } from "./only-once.ts";
import type { Purchase, Unsold } from "./sale.ts";
import { type ExactChain, paidBy, refusedBy, settle } from "./settle-exact.ts";
import type { DeliveryStore, KeptDelivery } from "./stores/delivery-store.ts";

export interface ExactParts {
  readonly chain: ExactChain;
  readonly store: DeliveryStore;
  readonly log: (message: string, cause?: unknown) => void;
}

export interface ExactPurchase extends Omit<Purchase, "payment"> {
  readonly payment: ExactPayment;
}

export type ExactOutcome =
  | { readonly type: "sold"; readonly delivery: KeptDelivery; readonly isReplay: boolean }
  /** The handler returned a failure, and nothing was charged. */
  | { readonly type: "failed"; readonly delivery: Delivery }
  | Unsold;

/** The key of an authorization in the store, and for the handler. */
const nameOf = ({ chainId, usdc }: ExactChain, { authorization: { from, nonce } }: ExactPayment): Hex =>
  keccak256(
    encodeAbiParameters(
      [{ type: "uint256" }, { type: "address" }, { type: "address" }, { type: "bytes32" }],
      [BigInt(chainId), usdc, from, nonce],
    ),
  );

/**
 * Sells one request for an ordinary payment: the handler runs, its response is charged unless it is a failure, and the
 * same payment again gets the same response.
 * @throws if it is unknown whether the payment has settled; the same request may be sent again
 */
export async function sellExact(parts: ExactParts, purchase: ExactPurchase): Promise<ExactOutcome> {
  const { chain, store } = parts;
  const { payment, resource } = purchase;
  const id = nameOf(chain, payment);
  const earlier = await store.get(id);
  if (earlier !== null) return replay(earlier, resource);
  const refusal = await purchase.validate();
  if (refusal !== null) return { type: "invalid", refusal };
  const paid = await paidBy(chain, payment);
  if (paid === "elsewhere")
    return { type: "conflict", error: "This payment was used before, and its response is no longer stored." };
  if (paid === "unused") {
    const refused = tooLate(payment.authorization, Date.now()) ?? (await refusedBy(chain, payment));
    if (refused !== null) return { type: "payment_required", error: `The payment cannot be made: ${refused}` };
  }
  const turn = await claimDelivery(store, id, resource);
  if (turn.type === "made") return replay(turn.kept, resource);
  if (turn.type === "other") return { type: "conflict", error: `This payment already bought ${turn.resource}.` };
  if (turn.type === "busy")
    return {
      type: "not_yet",
      error: "The response is still being made. Do not sign again; send the same header again.",
    };
  return serve(parts, purchase, { id, lease: turn.lease, paid: paid === "unused" ? null : paid });
}

interface Turn {
  readonly id: Hex;
  readonly lease: string;
  /** The transaction of a payment that settled earlier. */
  readonly paid: Hex | null;
}

/** Runs the handler, charges for its response, and stores it. */
async function serve({ chain, store, log }: ExactParts, purchase: ExactPurchase, { id, lease, paid }: Turn) {
  const { payment, resource, run } = purchase;
  const free = () => store.extend(id, lease, 0).catch(() => false);
  return whileLeased(store, { id, lease, log }, async (): Promise<ExactOutcome> => {
    const delivery = await readDelivery(await run(id));
    if (paid === null && delivery.status >= 400) {
      await free();
      return { type: "failed", delivery };
    }
    // A transfer may also revert because someone else has submitted the same authorization.
    const transaction = paid ?? (await settle(chain, payment)) ?? (await paidBy(chain, payment));
    if (transaction === "unused" || transaction === "elsewhere") {
      await free();
      return { type: "payment_required", error: "The payment cannot be made: USDC refused it when it was sent." };
    }
    const kept = await store.keep(id, { ...delivery, resource, transaction, decision: "release" });
    return { type: "sold", delivery: kept, isReplay: false };
  });
}

const replay = (delivery: KeptDelivery, resource: string): ExactOutcome =>
  delivery.resource === resource
    ? { type: "sold", delivery, isReplay: true }
    : { type: "conflict", error: `This payment already bought ${delivery.resource}.` };
