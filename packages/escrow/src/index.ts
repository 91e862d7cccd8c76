// Selling. The adapters for Express and Next.js have their own entry points.

export { type EscrowedOptions, escrowed } from "./hono.ts";
export type { Validate, Validated } from "./validate.ts";

// Selling with another framework, or with a custom way to hold and forward.

export type { BoundContest, ContestConditions, ContestTerms } from "./contest-terms.ts";
export type { Delivery } from "./delivery.ts";
export { deliveryTypedData, MAX_BODY_BYTES, signDelivery } from "./delivery.ts";
export { type Decision, type Forward, ForwardRefused, type ForwardRequest, forwardTo, HoldEnded } from "./forward.ts";
export { type HoldRequest, type SendHold, sendFrom } from "./hold.ts";
export { requirements } from "./schemes.ts";
export { createSeller, type SaleRequest, type SellerOptions } from "./seller.ts";
export type { EscrowFacts, Offer } from "./terms.ts";

// Storing deliveries.

export type { Claim, DeliveryStore, Ending, KeptDelivery } from "./stores/delivery-store.ts";
export { type KeyValue, keyValueStore } from "./stores/key-value-store.ts";
export { memoryStore } from "./stores/memory-store.ts";
export { POSTGRES_TABLE, postgresStore, type Queries } from "./stores/postgres-store.ts";

// Buying from an escrow. The stock client pays an operator.

export { RefusedTerms } from "./acceptable.ts";
export { EscrowScheme, type EscrowSchemeOptions } from "./escrow-scheme.ts";

// Contesting a delivery before its release.

export {
  type ContestClaim,
  type ContestOutcome,
  ContestRefused,
  type ContestRequest,
  contest,
  contestTypedData,
  type SignedDelivery,
  signedDeliveryOf,
} from "./contest.ts";

// Evaluating ERC-8183 jobs.

export {
  type AttestedVerdict,
  dealRefOf,
  type Evaluation,
  encodeEvaluate,
  evaluatorAbi,
  evaluatorOf,
  type JobPlace,
  type JobTerms,
  type JobTimes,
  jobTerms,
  VerdictRefused,
} from "./evaluator.ts";

// Looking up a payment, and refunding it without the arbiter.

export { type FoundHold, findHold, holdsOf } from "./find-hold.ts";
export {
  type EscrowPlace,
  PAYMENT_INFO_TYPEHASH,
  type PaymentInfo,
  payerAgnosticNonce,
  paymentId,
} from "./payment-info.ts";
export { type PaymentState, type PaymentStatus, readPayment } from "./payment-status.ts";
export { RefundRefused, type RefundRequest, type RefundTarget, type SelfRefund, selfRefund } from "./self-refund.ts";
