export type { Authorization } from "../../escrow/src/authorization.ts";
export { chainLedger } from "./chain-ledger.ts";
export { type ExamOrder, type ExamReport, examine } from "./exam/examine.ts";
export type { Answer, Exchange, Family, HttpRequest, Transport } from "./exam/exchange.ts";
export type { Authorizations, Bar, Ledger, Reading, Settled } from "./exam/ledger.ts";
export { ExaminersFault } from "./exam/ledger.ts";
export { CHECK_WEIGHTS, type Level } from "./exam/level.ts";
export type { OtherRoute } from "./exam/other-routes.ts";
export { namedRoute } from "./exam/other-routes.ts";
export type { Payer, TypedAuthorization } from "./exam/payment.ts";
export { type FindingCode, type Remedy, remedyOf } from "./exam/remedies.ts";
export type { Payable, Terms } from "./exam/terms.ts";
export type { Resource, VisitParts } from "./exam/visit.ts";
export {
  CHECK_TITLES,
  CHECKS,
  type CheckName,
  type CheckResult,
  type Finding,
  type Outcome,
} from "./exam/vocabulary.ts";
export { holdExam } from "./hold-exam.ts";
export { httpTransport } from "./http-transport.ts";
export type { Order } from "./order.ts";
export { reportJson, reportJsonText, reportText } from "./report.ts";
