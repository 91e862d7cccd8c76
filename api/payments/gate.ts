import PQueue from "p-queue";
import type { Settlement, SettlementState } from "../platform/chain/view.ts";
import { elapsedMs, sleep } from "../platform/clock.ts";
import type { RecordedAnswer } from "../platform/http/answer.ts";
import { type PaidRoute, type PaymentKey, SaleOver, type Terms, type Withheld } from "../platform/http/route.ts";
import { NETWORKS } from "../platform/networks.ts";
import { type Admitted, readForm, takeIn } from "./admission.ts";
import {
  beginCommands,
  NOT_ACKNOWLEDGED,
  type PaymentParts,
  type Subject,
  schemeNamed,
  withinBounds,
} from "./commands.ts";
import { storedIdentifier } from "./header.ts";
import type { Journal, Kept, NewPayment, PaymentRow } from "./journal.ts";
import { authenticate, type Checked, checkNew } from "./new-payment.ts";
import type { PresentedPayment } from "./scheme.ts";
import { settledWith } from "./signature.ts";
import { isAbandoned, START, step } from "./step.ts";
import type { Answer, Arrival, StepEvent } from "./step-types.ts";

/** How long a request waits for another process to finish with the same payment. */
const WAIT_MS = 20_000;
const RESOLVED_A_PASS = 128;
/**
 * A small number, because requests share the connections. A payment that waits for a slow server occupies only its own
 * slot.
 */
const RESOLVED_TOGETHER = 16;

/** A request that carries a payment. */
export interface PaidRequest {
  readonly route: PaidRoute;
  /** The terms that must have been signed. */
  readonly terms: Terms;
  readonly payment: PresentedPayment;
  readonly fingerprint: Buffer;
  /** The parsed body; undefined if its bytes are not JSON. */
  readonly body: unknown;
  /** Why no new payments are accepted; null while they are. */
  readonly over: string | null;
  /** The key that the sender's requests are counted under. */
  readonly client: string;
}

/** A request whose payment is answered immediately and never submitted. */
export interface WithheldRequest extends PaidRequest {
  readonly withhold: (withheld: Withheld) => RecordedAnswer;
}

/**
 * The payment that an answer is about. For a known payment identifier, it is the payment that was made, whichever
 * authorization the request contains.
 */
export type Answerable = Pick<NewPayment, "key" | "scheme" | "value" | "receivedAt">;

export interface Answered {
  readonly answer: Answer;
  readonly about: Answerable;
}

export type Gate = ReturnType<typeof createGate>;

export function createGate(parts: PaymentParts) {
  const running = new Set<Promise<unknown>>();
  const track = <T>(work: Promise<T>): Promise<T> => {
    const tracked = work.finally(() => running.delete(tracked));
    running.add(tracked);
    return tracked;
  };
  return {
    /** Answers a paid request. Rejects only if the journal cannot be read. */
    pay: (request: PaidRequest): Promise<Answered> =>
      track(untilAnswered(() => attempt(parts, request, (asked) => drive(parts, asked.subject, asked.event)))),
    /** The same for a withheld payment, which is checked like any other, but not simulated, and never submitted. */
    withhold: (request: WithheldRequest): Promise<Answered> =>
      track(untilAnswered(() => attempt(parts, request, (asked) => answerWithheld(parts, request, asked)))),
    /** Finishes payments that no client retries; returns how many it examined. */
    resolveDue: (): Promise<number> => track(resolveDue(parts)),
    /** Waits for every request in progress, including those whose client has disconnected. */
    drain: async (): Promise<void> => {
      while (running.size > 0) await Promise.allSettled([...running]);
    },
  };
}

async function untilAnswered(look: () => Promise<Answered>): Promise<Answered> {
  const deadline = elapsedMs() + WAIT_MS;
  for (let pause = 25; ; pause = Math.min(pause * 2, 250)) {
    const answered = await look();
    const { answer } = answered;
    const held = answer.type === "wait" && answer.because === "held";
    if (!held || elapsedMs() >= deadline) return answered;
    await sleep(pause);
  }
}

const UNAVAILABLE: Answer = { type: "wait", charged: false, because: "unavailable" };
const NOT_PAYERS = "The signature is not the payer's.";
const HELD: Answer = { type: "wait", charged: false, because: "held" };

/** Handles the request once. A failed read decides nothing. */
async function attempt(
  parts: PaymentParts,
  request: PaidRequest,
  answer: (asked: Asked) => Promise<Answer>,
): Promise<Answered> {
  const asked = await ask(parts, request).catch((error: unknown) => {
    parts.log.warn({ err: error }, "a payment could not be looked up");
    return null;
  });
  return asked === null ? unavailable(parts, request) : answered(parts, asked, await answer(asked));
}

/** Adds the scheme's error code to a refusal by the gate. */
function answered(parts: PaymentParts, { about }: Pick<Asked, "about">, answer: Answer): Answered {
  if (answer.type !== "pay" || answer.kind === undefined) return { answer, about };
  const { worded } = schemeNamed(parts, about.scheme);
  return { answer: { type: "pay", ...worded(answer.kind, answer.error) }, about };
}

const unavailable = ({ now }: PaymentParts, { terms, payment }: PaidRequest): Answered => ({
  answer: UNAVAILABLE,
  about: {
    key: keyOf(terms, payment),
    scheme: payment.scheme,
    value: payment.authorization.value,
    receivedAt: now(),
  },
});

async function answerWithheld(parts: PaymentParts, request: WithheldRequest, asked: Asked): Promise<Answer> {
  const { subject, event, created } = asked;
  if (event.row !== null) return drive(parts, subject, event);
  const refused = typeof event.fresh === "string" ? null : event.fresh;
  if (event.signature === "invalid") {
    const why = refused?.type === "pay" ? refused.error : NOT_PAYERS;
    return { type: "malformed", detail: `${why} Nothing was recorded.` };
  }
  return refused ?? withhold(parts, request, created);
}

/** Stores row and record in one transaction. A concurrent copy that loses the race finds the winner's row. */
async function withhold(parts: PaymentParts, request: WithheldRequest, created: NewPayment): Promise<Answer> {
  const { key, digest, version, payTo, value, validAfter, validBefore, receivedAt, details } = created;
  const sold = { payment: key, digest, version, payTo, value, validAfter, validBefore, receivedAt, details };
  const recorded = request.withhold(sold);
  const response = withinBounds(recorded.answer);
  try {
    const rows = await parts.journal.withhold(created, recorded);
    return rows === 1 ? { type: "result", response, settlement: null, replay: false } : HELD;
  } catch (error) {
    if (error instanceof SaleOver) return { type: "over", detail: error.message };
    parts.log.error({ err: error, payer: key.payer, nonce: key.nonce }, NOT_ACKNOWLEDGED);
    return UNAVAILABLE;
  }
}

interface Asked {
  readonly subject: Subject;
  readonly event: Arrival;
  readonly created: NewPayment;
  readonly about: Answerable;
}

/** Finds the row, then authenticates the request or checks the new payment. `step` decides. */
async function ask(parts: PaymentParts, given: PaidRequest): Promise<Asked> {
  const { terms } = given;
  const paymentId = storedIdentifier(given.payment.paymentId);
  const key = keyOf(terms, given.payment);
  const scheme = schemeNamed(parts, given.payment.scheme);
  const digest = scheme.digest(given.payment, terms.network);
  const found = await parts.journal.find(key, paymentId);
  const { row, sameId } = found;
  const signed = { payer: key.payer, digest, signature: given.payment.signature };
  const payment = { ...given.payment, signature: settledWith(signed, scheme) };
  const request = { ...given, payment };
  const isNew = isUnknown(found);
  const checked = isNew ? await checkNew(parts, request, signed) : await authenticate(parts, request, { row, signed });
  // If a copy of this payment was accepted and submitted during the checks, its row decides.
  if (checked.fresh !== "ok" && !isSame(found, await parts.journal.find(key, paymentId))) return ask(parts, given);
  const created = newPayment(parts, request, { key, digest, paymentId, ...checked });
  const insert = (token: string) => parts.journal.insert(created, token);
  const free = async () => (sameId === null ? 0 : parts.journal.free(sameId.key));
  // The signature covers the details, so they are the same in every request with this payment.
  const subject = row === null ? created : { ...row, details: payment.details };
  const bring = row === null ? async () => created : bringAgain(request, created.extensions);
  return {
    created,
    about: (isNew ? null : (row ?? sameId)) ?? created,
    subject: {
      payment: subject,
      signature: async () => payment.signature,
      extensions: payment.extensions,
      bring,
      insert,
      free,
    },
    event: {
      type: "request",
      row,
      sameId,
      digest,
      fingerprint: request.fingerprint.toString("hex"),
      paymentId,
      signature: checked.signature,
      fresh: checked.fresh,
    },
  };
}

function keyOf({ network }: Terms, { authorization: { from: payer, nonce } }: PresentedPayment): PaymentKey {
  return { network, asset: NETWORKS[network].usdc.address, payer, nonce };
}

/** Returns the input again for a payment whose row does not have it yet. The body is read once. */
function bringAgain(request: PaidRequest, extensions: NewPayment["extensions"]): () => Promise<Kept | null> {
  const { signature, details } = request.payment;
  let admitting: Promise<Admitted> | undefined;
  return async () => {
    admitting ??= takeIn(readForm(request), request);
    const admitted = await admitting;
    return "input" in admitted ? { signature, details, input: admitted.input, extensions } : null;
  };
}

type JournalMatch = Awaited<ReturnType<Journal["find"]>>;

/** Whether the payment and its identifier are both free. */
const isUnknown = ({ row, sameId }: JournalMatch): boolean => row === null && (sameId === null || isAbandoned(sameId));

/** Whether a second lookup finds the same as the first: no row, or the same payment under the identifier. */
const isSame = (before: JournalMatch, now: JournalMatch): boolean =>
  now.row === null && now.sameId?.key.nonce === before.sameId?.key.nonce && isUnknown(now) === isUnknown(before);

function newPayment(
  parts: PaymentParts,
  { route, payment, fingerprint }: PaidRequest,
  { key, digest, paymentId, input, headBlock }: Checked & Pick<NewPayment, "key" | "digest" | "paymentId">,
): NewPayment {
  const { authorization, signature, version, scheme, details } = payment;
  const { to: payTo, value, validAfter, validBefore } = authorization;
  const isListed = schemeNamed(parts, scheme).listsBy === "extensions";
  const extensions = isListed ? (payment.extensions ?? null) : null;
  const signed = { digest, signature, payTo, value, validAfter, validBefore, scheme, details, extensions };
  const request = { route: route.id, fingerprint, input, headBlock, receivedAt: parts.now() };
  return { key, paymentId, version, ...signed, ...request };
}

async function resolveDue(parts: PaymentParts): Promise<number> {
  const rows = await parts.journal.due(RESOLVED_A_PASS);
  const { pending, final } = await findConfirmed(parts, rows);
  if (pending.length > 0) await parts.journal.postpone(pending.map(({ key }) => key));
  if (final.length > 0) await parts.journal.finalize(final);
  const resolve = (row: PaymentRow) => {
    const signature = () => parts.journal.signature(row.key);
    const extensions = row.extensions ?? undefined;
    const none = { bring: async () => null, insert: async () => 0, free: async () => 0 };
    const subject = { payment: row, signature, extensions, ...none };
    return drive(parts, subject, { type: "resolve", row });
  };
  const confirmed = new Set<PaymentRow>([...pending, ...final]);
  const open = rows.filter((row) => !confirmed.has(row));
  await new PQueue({ concurrency: RESOLVED_TOGETHER }).addAll(open.map((row) => () => resolve(row)));
  return rows.length;
}

type Settled = PaymentRow & { readonly settlement: Settlement };

/**
 * Finds fulfilled payments whose block is still in the chain, with one read per block and no lease. Each of the others
 * gets its own run.
 */
async function findConfirmed({ chains }: PaymentParts, rows: readonly PaymentRow[]) {
  const fulfilled = rows.filter((row): row is Settled => row.state === "fulfilled" && row.settlement !== null);
  const blocks = new Map<string, Promise<SettlementState>>();
  for (const { key, settlement } of fulfilled) {
    if (!blocks.has(settlement.blockHash))
      blocks.set(
        settlement.blockHash,
        chains[key.network].settlementState(settlement).catch(() => "unknown"),
      );
  }
  const standings = await Promise.all(fulfilled.map(({ settlement }) => blocks.get(settlement.blockHash)));
  const found = (wanted: SettlementState) => fulfilled.filter((_, index) => standings[index] === wanted);
  return { pending: found("pending"), final: found("final") };
}

/** Runs the state machine: executes a command, feeds back its outcome, and stops at the answer. */
async function drive(parts: PaymentParts, subject: Subject, first: StepEvent): Promise<Answer> {
  const commands = beginCommands(parts, subject);
  let run = START;
  let event = first;
  try {
    for (;;) {
      const decision = step(run, event);
      run = decision.run;
      if (decision.command.type === "answer") return decision.command.answer;
      const started = elapsedMs();
      event = await commands.execute(decision.command);
      parts.log.debug({ command: decision.command.type, ms: elapsedMs() - started }, "gate");
    }
  } finally {
    commands.end();
  }
}
