import type { z } from "zod";
import type { RecordedAnswer } from "../kernel/completion.ts";
import type { FieldError } from "../kernel/field-error.ts";
import { NETWORKS } from "../kernel/networks.ts";
import { Over, type PaidRoute, type Terms, type Withheld } from "../kernel/route.ts";
import type { Address, Hex } from "../kernel/wallet.ts";
import type { Chain, Standing } from "./chain.ts";
import {
  beginCommands,
  NOT_ACKNOWLEDGED,
  type PaymentParts,
  type Subject,
  schemeNamed,
  withinBounds,
} from "./commands.ts";
import type { Journal, NewPayment, PaymentRow } from "./journal.ts";
import type { PresentedPayment } from "./scheme.ts";
import { isAccountSignature, signatureSha256 } from "./signature.ts";
import { START, step } from "./step.ts";
import type { Answer, Arrival, Settlement, StepEvent } from "./step-types.ts";
import { isStorable } from "./storable.ts";
import { laterOf, windowError } from "./window.ts";

/** How long a request waits for another process to finish with the same payment. */
const WAIT_MS = 20_000;
const RESOLVED_A_PASS = 128;
/** A few at a time, because requests share the connections. One stuck on a slow server holds only its own slot. */
const RESOLVED_TOGETHER = 16;

/** A request that carries a payment. */
export interface PaidRequest {
  readonly route: PaidRoute;
  /** The terms that must have been signed. */
  readonly terms: Terms;
  readonly payment: PresentedPayment;
  readonly fingerprint: Buffer;
  /** The parsed body; undefined if its bytes are not JSON. */
  readonly body: { readonly value: unknown } | undefined;
  /** Why no new payments are accepted; null while they are. */
  readonly over: string | null;
}

/** A request whose payment is answered at once and never submitted. */
export interface WithheldRequest extends PaidRequest {
  readonly withhold: (withheld: Withheld) => RecordedAnswer;
}

export interface Gate {
  /** Answers a paid request. Rejects only if the journal cannot be read. */
  pay(request: PaidRequest): Promise<Answer>;
  /** Likewise for a withheld payment: checked like any other, but not simulated, and never submitted. */
  withhold(request: WithheldRequest): Promise<Answer>;
  /** Finishes payments that no client retries; returns how many it looked at. */
  resolveDue(): Promise<number>;
  /** Waits for every request in progress, including those whose client has disconnected. */
  drain(): Promise<void>;
}

export function createGate(parts: PaymentParts): Gate {
  const running = new Set<Promise<unknown>>();
  const track = <T>(work: Promise<T>): Promise<T> => {
    const tracked = work.finally(() => running.delete(tracked));
    running.add(tracked);
    return tracked;
  };
  return {
    pay: (request) => track(untilAnswered(parts, () => attempt(parts, request))),
    withhold: (request) => track(untilAnswered(parts, () => attemptWithheld(parts, request))),
    resolveDue: () => track(resolveDue(parts)),
    drain: async () => {
      while (running.size > 0) await Promise.allSettled([...running]);
    },
  };
}

async function untilAnswered(parts: PaymentParts, look: () => Promise<Answer>): Promise<Answer> {
  const deadline = parts.now().getTime() + WAIT_MS;
  for (let pause = 25; ; pause = Math.min(pause * 2, 250)) {
    const answer = await look();
    const held = answer.say === "wait" && answer.because === "held";
    if (!held || parts.now().getTime() >= deadline) return answer;
    await parts.sleep(pause);
  }
}

const UNAVAILABLE: Answer = { say: "wait", charged: false, because: "unavailable" };
const HELD: Answer = { say: "wait", charged: false, because: "held" };

/** One look at the payment; a failed read decides nothing. */
async function attempt(parts: PaymentParts, request: PaidRequest): Promise<Answer> {
  const asked = await tryToAsk(parts, request);
  return asked === null ? UNAVAILABLE : drive(parts, asked.subject, asked.event);
}

async function attemptWithheld(parts: PaymentParts, request: WithheldRequest): Promise<Answer> {
  const asked = await tryToAsk(parts, request);
  if (asked === null) return UNAVAILABLE;
  const { subject, event, created } = asked;
  if (event.row !== null) return drive(parts, subject, event);
  if (event.signature === "invalid")
    return { say: "malformed", detail: "The signature is not the payer's. Nothing was recorded." };
  return event.fresh === "ok" ? withhold(parts, request, created) : event.fresh;
}

/** Stores row and record in one transaction. A concurrent copy that loses the race finds the winner's row. */
async function withhold(parts: PaymentParts, request: WithheldRequest, created: NewPayment): Promise<Answer> {
  const { key, digest, version, payTo, value, validAfter, validBefore, receivedAt, details } = created;
  const sold = { payment: key, digest, version, payTo, value, validAfter, validBefore, receivedAt, details };
  const recorded = request.withhold(sold);
  const response = withinBounds(recorded.answer);
  try {
    const rows = await parts.journal.withhold(created, recorded);
    return rows === 1 ? { say: "result", response, settlement: null, replay: false } : HELD;
  } catch (error) {
    if (error instanceof Over) return { say: "over", detail: error.message };
    parts.log.error({ err: error, payer: key.payer, nonce: key.nonce }, NOT_ACKNOWLEDGED);
    return UNAVAILABLE;
  }
}

interface Asked {
  readonly subject: Subject;
  readonly event: Arrival;
  readonly created: NewPayment;
}

const tryToAsk = (parts: PaymentParts, request: PaidRequest): Promise<Asked | null> =>
  ask(parts, request).catch((error: unknown) => {
    parts.log.warn({ err: error }, "a payment could not be looked up");
    return null;
  });

/** Finds the row, authenticates, and runs the checks for a payment without a row; `step` decides. */
async function ask(parts: PaymentParts, request: PaidRequest): Promise<Asked> {
  const { route, payment } = request;
  const { authorization, signature, paymentId } = payment;
  const facts = NETWORKS[route.network];
  const { from: payer, nonce } = authorization;
  const key = { network: route.network, asset: facts.usdc.address, payer, nonce };
  const digest = schemeNamed(parts, payment.scheme).digest(payment, route.network);
  const { row, sameId } = await parts.journal.find(key, paymentId);
  const same = row !== null && row.digest === digest && row.signatureSha256 === signatureSha256(signature);
  const valid = same || (await isSigned(parts.chains[route.network], { payer, digest, signature }));
  const checked = row === null && sameId === null ? await freshChecks(parts, request, valid) : NOT_CHECKED;
  // A copy of this payment may have been accepted and submitted during the checks: then its row decides.
  if (checked.fresh !== "ok" && !isEmpty(await parts.journal.find(key, paymentId))) return ask(parts, request);
  const created = newPayment(parts, request, { key, digest, ...checked });
  const insert = (token: string) => parts.journal.insert(created, token);
  return {
    created,
    subject: { payment: row ?? created, signature: async () => signature, insert },
    event: {
      on: "request",
      row,
      sameId,
      digest,
      fingerprint: request.fingerprint.toString("hex"),
      paymentId,
      signature: valid ? "valid" : "invalid",
      fresh: checked.fresh,
    },
  };
}

const isEmpty = ({ row, sameId }: Awaited<ReturnType<Journal["find"]>>): boolean => row === null && sameId === null;

interface Checked {
  readonly fresh: "ok" | Answer;
  readonly input: unknown;
  readonly headBlock: number;
}

const NOT_CHECKED: Checked = { fresh: "ok", input: null, headBlock: 0 };

function newPayment(
  parts: PaymentParts,
  { route, payment, fingerprint }: PaidRequest,
  { key, digest, input, headBlock }: Checked & Pick<NewPayment, "key" | "digest">,
): NewPayment {
  const { authorization, signature, paymentId, version, scheme, details } = payment;
  const { to: payTo, value, validAfter, validBefore } = authorization;
  const signed = { digest, signature, payTo, value, validAfter, validBefore, scheme, details };
  const request = { route: route.id, fingerprint, input, headBlock, receivedAt: parts.now() };
  return { key, paymentId, version, ...signed, ...request };
}

interface Signed {
  readonly payer: Address;
  readonly digest: Hex;
  readonly signature: Hex;
}

async function isSigned(chain: Chain, { payer, digest, signature }: Signed): Promise<boolean> {
  return isAccountSignature(payer, digest, signature) || chain.verifyContractSignature(payer, digest, signature);
}

/** The checks for a payment without a row: signed terms and window, then the body. Nothing has moved yet. */
async function freshChecks(
  parts: PaymentParts,
  { route, terms, payment, body, over }: PaidRequest,
  isSigned: boolean,
): Promise<Checked> {
  const head = await parts.chains[route.network].head();
  const none = { input: null, headBlock: head.number };
  if (over !== null) return { ...none, fresh: { say: "over", detail: over } };
  const now = parts.now();
  const wrong =
    schemeNamed(parts, payment.scheme).mismatch(payment, terms, now) ??
    windowError(payment.authorization, { now: laterOf(now, head.time), head: head.time });
  if (wrong !== null) return { ...none, fresh: { say: "pay", error: wrong } };
  if (body === undefined) return { ...none, fresh: { say: "malformed", detail: "The body is not JSON." } };
  if (!isStorable(body.value))
    return {
      ...none,
      fresh: {
        say: "malformed",
        detail: "The body is nested too deeply, or contains U+0000 or an unpaired surrogate.",
      },
    };
  const parsed = route.input.safeParse(body.value ?? undefined);
  if (!parsed.success) {
    const say = parsed.error.issues.every((issue) => issue.code === "custom") ? "unacceptable" : "malformed";
    return { ...none, fresh: { say, detail: UNFIT, errors: parsed.error.issues.map(fieldError) } };
  }
  // Without a valid signature, no chain or index is queried.
  const taken = isSigned && route.intake ? await route.intake(parsed.data) : { input: parsed.data };
  if ("refused" in taken) return { ...none, fresh: { say: "unacceptable", detail: UNFIT, errors: taken.refused } };
  if ("unavailable" in taken) return { ...none, fresh: { say: "unavailable", detail: taken.unavailable } };
  return { fresh: "ok", input: taken.input ?? null, headBlock: head.number };
}

const UNFIT = "The body is not valid for this route. Nothing was charged.";

function fieldError(issue: z.core.$ZodIssue): FieldError {
  const rule = issue.code === "custom" ? issue.params?.rule : undefined;
  const error = { path: issue.path.join("."), message: issue.message };
  return typeof rule === "number" ? { ...error, rule } : error;
}

async function resolveDue(parts: PaymentParts): Promise<number> {
  const rows = await parts.journal.due(RESOLVED_A_PASS);
  const { pending, final } = await findStanding(parts, rows);
  if (pending.length > 0) await parts.journal.postpone(pending.map(({ key }) => key));
  if (final.length > 0) await parts.journal.finalise(final);
  const resolve = (row: PaymentRow) => {
    const signature = () => parts.journal.signature(row.key);
    return drive(parts, { payment: row, signature, insert: async () => 0 }, { on: "resolve", row });
  };
  const standing = new Set<PaymentRow>([...pending, ...final]);
  const open = rows.filter((row) => !standing.has(row));
  const work = async () => {
    for (let row = open.shift(); row !== undefined; row = open.shift()) await resolve(row);
  };
  await Promise.all(Array.from({ length: RESOLVED_TOGETHER }, work));
  return rows.length;
}

type Settled = PaymentRow & { readonly settlement: Settlement };

/**
 * Watches fulfilled payments whose block still stands at the cost of one block read and no lease. The others get a run
 * each.
 */
async function findStanding({ chains }: PaymentParts, rows: readonly PaymentRow[]) {
  const fulfilled = rows.filter((row): row is Settled => row.state === "fulfilled" && row.settlement !== null);
  const blocks = new Map<string, Promise<Standing>>();
  for (const { key, settlement } of fulfilled) {
    if (!blocks.has(settlement.blockHash))
      blocks.set(
        settlement.blockHash,
        chains[key.network].standing(settlement).catch(() => "unknown"),
      );
  }
  const standings = await Promise.all(fulfilled.map(({ settlement }) => blocks.get(settlement.blockHash)));
  const found = (wanted: Standing) => fulfilled.filter((_, index) => standings[index] === wanted);
  return { pending: found("pending"), final: found("final") };
}

/** Runs the machine: executes a command, feeds back its outcome, stops at the answer. */
async function drive(parts: PaymentParts, subject: Subject, first: StepEvent): Promise<Answer> {
  const commands = beginCommands(parts, subject);
  let run = START;
  let event = first;
  try {
    for (;;) {
      const decision = step(run, event);
      run = decision.run;
      if (decision.command.do === "answer") return decision.command.answer;
      const started = parts.elapsedMs();
      event = await commands.execute(decision.command);
      parts.log.debug({ command: decision.command.do, ms: parts.elapsedMs() - started }, "gate");
    }
  } finally {
    commands.end();
  }
}
