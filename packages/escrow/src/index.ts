export { RefusedTerms } from "./acceptable.ts";
export type { Delivery } from "./delivery.ts";
export { deliveryTypedData, MAX_BODY_BYTES, signDelivery } from "./delivery.ts";
export { EscrowScheme, type EscrowSchemeOptions } from "./escrow-scheme.ts";
export {
  type AttestedVerdict,
  dealRefOf,
  type Evaluation,
  encodeEvaluate,
  evaluatorOf,
  type JobPlace,
  type JobTerms,
  type JobTimes,
  jobTerms,
  VerdictRefused,
} from "./evaluator.ts";
export { evaluatorAbi } from "./evaluator-abi.ts";
export { type FoundHold, findHold, holdsOf } from "./find-hold.ts";
export { type Decision, type Forward, ForwardRefused, type ForwardRequest, forwardTo, HoldEnded } from "./forward.ts";
export { type HoldRequest, type SendHold, sendFrom } from "./hold.ts";
export { type EscrowedOptions, escrowed } from "./hono.ts";
export {
  type EscrowPlace,
  PAYMENT_INFO_TYPEHASH,
  type PaymentInfo,
  payerAgnosticNonce,
  paymentId,
} from "./payment-info.ts";
export { type PaymentState, type PaymentStatus, readPayment } from "./payment-status.ts";
export { requirements } from "./schemes.ts";
export { RefundRefused, type RefundRequest, type RefundTarget, type SelfRefund, selfRefund } from "./self-refund.ts";
export { createSeller, type SaleRequest, type SellerOptions } from "./seller.ts";
export type { Claim, DeliveryStore, Ending, KeptDelivery } from "./stores/delivery-store.ts";
export { type KeyValue, keyValueStore } from "./stores/key-value-store.ts";
export { memoryStore } from "./stores/memory-store.ts";
export { POSTGRES_TABLE, postgresStore, type Queries } from "./stores/postgres-store.ts";
export type { EscrowFacts, Offer } from "./terms.ts";
export type { Validate, Validated } from "./validate.ts";
