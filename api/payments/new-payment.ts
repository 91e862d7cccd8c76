import { isWrapped, needsCode } from "../../packages/escrow/src/signature-forms.ts";
import type { Head, PayerSignature, View } from "../platform/chain/view.ts";
import type { PaidRoute, Terms } from "../platform/http/route.ts";
import { NETWORKS, type Network } from "../platform/networks.ts";
import { readForm, takeIn } from "./admission.ts";
import { type PaymentParts, schemeNamed } from "./commands.ts";
import type { PaymentRow } from "./journal.ts";
import { readAgain } from "./readings.ts";
import type { Refusal, RefusedFor } from "./refusal.ts";
import type { PresentedPayment } from "./scheme.ts";
import { MAX_TIMEOUT_SECONDS } from "./schemes/exact.ts";
import {
  closed,
  isAccountSignature,
  notSigned,
  signatureSha256,
  tooLong,
  undeployed,
  unixSeconds,
  windowProblem,
} from "./signature.ts";
import type { Answer } from "./step-types.ts";

/** A request whose payment is not in the journal. */
interface NewRequest {
  readonly route: PaidRoute;
  readonly terms: Terms;
  readonly payment: PresentedPayment;
  readonly body: unknown;
  readonly over: string | null;
  readonly client: string;
  readonly withhold?: unknown;
}

/** The results of the checks of a new payment. `paid`: its window is closed, and the chain shows that it paid us. */
export interface Checked {
  readonly signature: "valid" | "invalid";
  readonly fresh: "ok" | "paid" | Answer;
  readonly input: unknown;
  /** The search for the settlement starts at this block. */
  readonly headBlock: number;
}

const answered = (fresh: Answer): Checked => ({ signature: "valid", fresh, input: null, headBlock: 0 });
const pay = (refusal: Refusal): Checked => answered({ type: "pay", ...refusal });
/** The usual lag between nodes. */
const BEHIND_SECONDS = 30n;
const UNTOLD: Checked = answered({ type: "wait", charged: false, because: "unavailable" });

type Signing = Pick<NewRequest, "terms" | "payment" | "client"> & { readonly afresh?: boolean };

/** Makes several readings, until one shows that the payer signed. */
const isSigned = (parts: PaymentParts, request: Signing, signed: PayerSignature): Promise<boolean> =>
  readAgain(
    (reading) => isSignedNow(parts, { ...request, afresh: reading > 1 }, signed),
    (isValid) => !isValid,
  );

/**
 * Makes one reading. An account's signature is verified locally; for an account with code, the chain is read, then the
 * scheme.
 */
async function isSignedNow(
  parts: PaymentParts,
  { terms: { network }, payment, client, afresh = false }: Signing,
  signed: PayerSignature,
): Promise<boolean> {
  if (isAccountSignature(signed.payer, signed.digest, signed.signature)) return true;
  if (await parts.chains[network].verifyContractSignature(signed, client, { afresh })) return true;
  return (await schemeNamed(parts, payment.scheme).isSignedOtherwise?.({ network, ...signed }, client)) ?? false;
}

/** Explains in one sentence for the 402 why an authorization does not meet the terms; null if it does. */
function misfit({ schemes }: Pick<PaymentParts, "schemes">, { terms, payment, over }: NewRequest, at: Date) {
  // After the session, no terms are offered.
  if (over !== null) return null;
  const scheme = schemeNamed({ schemes }, payment.scheme);
  const long = tooLong(payment.authorization, unixSeconds(at));
  return scheme.misfit(payment, terms, at) ?? (long === null ? null : scheme.worded("valid for too long", long));
}

/**
 * Authenticates a payment whose row or identifier is known. The row's own signature needs no second check. Another
 * authorization under the identifier must meet the terms like a new one. Otherwise any signature of the payer would do,
 * however old, and for any recipient.
 */
export async function authenticate(
  parts: PaymentParts,
  request: NewRequest,
  { row, signed }: { readonly row: PaymentRow | null; readonly signed: PayerSignature },
): Promise<Checked> {
  const error = row === null ? unfit(parts, request) : null;
  if (error !== null) return pay(error);
  const same = row?.digest === signed.digest && row.signatureSha256 === signatureSha256(request.payment.signature);
  const isValid = same || (await isSigned(parts, request, signed));
  if (!isValid && row === null) return unsigned(parts, request, signed);
  return { signature: isValid ? "valid" : "invalid", fresh: "ok", input: null, headBlock: 0 };
}

/** Checks by our clock alone, because the payment is never submitted to the chain. */
function unfit(parts: PaymentParts, request: NewRequest): Refusal | null {
  const { payment, over } = request;
  const at = parts.now();
  const wrong = misfit(parts, request, at);
  if (wrong !== null || over !== null) return wrong;
  const { worded } = schemeNamed(parts, payment.scheme);
  const now = unixSeconds(at);
  const problem = windowProblem(payment.authorization, { now, head: now });
  return problem === null ? null : worded(problem.because === "closed" ? "expired" : "early", problem.error);
}

/** Explains why a signature is not valid. An undeployed wallet's signature alone does not identify it. */
async function whyUnsigned(
  { chains }: Pick<PaymentParts, "chains">,
  { terms: { network }, payment, client }: Signing,
  signed: PayerSignature,
): Promise<readonly [RefusedFor, string]> {
  const { payer, signature } = signed;
  // A signature that is still wrapped belongs to a wallet that its scheme would have deployed.
  const isDeployed =
    !needsCode(signature) || isWrapped(payment.signature) || (await chains[network].isDeployed(payer, client));
  if (!isDeployed) return ["undeployed", undeployed(payer, network)];
  return ["unsigned", notSigned(signed, network)];
}

async function unsigned(parts: PaymentParts, request: NewRequest, signed: PayerSignature): Promise<Checked> {
  const { worded } = schemeNamed(parts, request.payment.scheme);
  return { ...pay(worded(...(await whyUnsigned(parts, request, signed)))), signature: "invalid" };
}

/**
 * Checks a payment without a row, free checks first: the terms, the bounds, and the signature of an account, then the
 * body's form, and only then the chain. No money has moved yet.
 */
export async function checkNew(parts: PaymentParts, request: NewRequest, signed: PayerSignature): Promise<Checked> {
  const { payment, over } = request;
  const at = parts.now();
  const { worded } = schemeNamed(parts, payment.scheme);
  const wrong = misfit(parts, request, at);
  if (wrong !== null) return pay(wrong);
  const closing = over === null ? closed(payment.authorization, unixSeconds(at)) : null;
  const late = closing === null ? null : worded("expired", closing);
  // The clock refuses it anyway, so one reading decides whether it is worth a search.
  const isPayers = late === null ? isSigned : isSignedNow;
  if (!(await isPayers(parts, request, signed))) {
    if (late !== null) return pay(late);
    return unsigned(parts, request, signed);
  }
  if (over !== null) return answered({ type: "over", detail: over });
  const form = readForm(request);
  // A header whose window has closed may have paid, so a body that does not fit must not lead to another payment.
  return "input" in form ? checkOnChain(parts, request, form) : answered(form.refused);
}

async function checkOnChain(
  parts: PaymentParts,
  request: NewRequest,
  form: { readonly input: unknown },
): Promise<Checked> {
  const { terms, payment } = request;
  const head = await parts.chains[terms.network].head();
  const problem = windowProblem(payment.authorization, { now: unixSeconds(parts.now()), head: head.time });
  if (problem?.because === "behind") return answered({ type: "unavailable", detail: problem.error });
  const { worded } = schemeNamed(parts, payment.scheme);
  if (problem?.because === "early") {
    const after = Number(payment.authorization.validAfter - head.time) + 1;
    return pay({ ...worded("early", problem.error), retry: "same", after });
  }
  const settled = problem === null ? null : await settledBefore(parts, request, head);
  // If a node has not seen it, or nodes disagree, the sender may still have paid.
  if (settled?.nonce === "spent" || settled?.nonce === "unused") return UNTOLD;
  if (problem !== null && settled?.nonce !== "paid") return pay(worded("expired", problem.error));
  const cause = problem === null ? parts.usdc.closed(terms) : null;
  if (cause !== null) return answered({ type: "unavailable", detail: cause });
  const taken = await takeIn(form, request);
  if ("refused" in taken) return answered(taken.refused);
  const { input } = taken;
  return settled?.nonce === "paid"
    ? { signature: "valid", fresh: "paid", input, headBlock: settled.settlement.block }
    : { signature: "valid", fresh: "ok", input, headBlock: head.number };
}

/**
 * Returns the chain's view of a payment that can no longer be submitted. A restored journal may have lost its row, and
 * its payer must not pay twice. A withheld payment is never submitted, so there is no settlement to find.
 */
async function settledBefore(
  parts: PaymentParts,
  { terms, payment, withhold }: NewRequest,
  head: Head,
): Promise<View | null> {
  if (withhold !== undefined) return null;
  const { from: payer, nonce, to: payTo, value, validAfter, validBefore } = payment.authorization;
  const fromBlock = arrivalBlock(terms.network, validBefore, head);
  const late = head.time - BEHIND_SECONDS;
  const unknownAt = validBefore < late ? validBefore : late;
  const expected = { payer, nonce, payTo, value, validAfter, validBefore, fromBlock, unknownAt };
  return schemeNamed(parts, payment.scheme).look(terms.network, expected);
}

/** Estimates the head when the payment arrived. Most authorizations are valid for exactly the requested time. */
function arrivalBlock(network: Network, validBefore: bigint, { number, time }: Head): number {
  const seconds = Number(time - validBefore) + MAX_TIMEOUT_SECONDS;
  return Math.max(0, number - Math.ceil(seconds / NETWORKS[network].blockSeconds));
}
