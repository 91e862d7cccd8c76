import { asReading } from "../platform/chain/nodes.ts";
import type { Chain, Expected, Settlement, View } from "../platform/chain/view.ts";
import { elapsedMs, every, sleep } from "../platform/clock.ts";
import type { Completion, StoredAnswer } from "../platform/http/answer.ts";
import type { PaidRoute, PaymentKey, Sale } from "../platform/http/route.ts";
import type { Network } from "../platform/networks.ts";
import { TurnedAway } from "../platform/relayer/places.ts";
import type { Hex } from "../platform/wallet.ts";
import { shortfall } from "./admission.ts";
import { type Entered, type Journal, type Kept, type NewPayment, NotStored } from "./journal.ts";
import { readAgain } from "./readings.ts";
import { type Extensions, resourceOf, type Scheme } from "./scheme.ts";
import { laterOf, windowOpen } from "./signature.ts";
import type { Command, StepEvent } from "./step-types.ts";
import type { UsdcWatch } from "./usdc-chain.ts";

const HEARTBEAT_MS = 10_000;
/**
 * How long to wait for a submitted settlement to appear on our own view of the chain before the client has to retry.
 */
export const PATIENCE_MS = 8_000;
/** How long nodes may disagree about a visible settlement; after that, the view is taken as it is. */
const DISAGREEMENT_MS = 1_500;
/** If a node does not show the settlement within this time, the next node is read, because a node may be stalled. */
const NEXT_NODE_MS = 3_000;
const MAX_RESPONSE_BYTES = 2 * 1024 * 1024;

export const NOT_ACKNOWLEDGED = "a journal write was not acknowledged";

/** The dependencies of the gate. */
export interface PaymentParts {
  readonly journal: Journal;
  readonly chains: Readonly<Record<Network, Chain>>;
  readonly schemes: ReadonlyMap<string, Scheme>;
  readonly usdc: Pick<UsdcWatch, "closed">;
  readonly routes: ReadonlyMap<string, PaidRoute>;
  readonly baseUrl: string;
  readonly now: () => Date;
  readonly newToken: () => string;
  /** `PATIENCE_MS`, or what a test can wait for. */
  readonly patienceMs: number;
  readonly log: {
    debug(facts: object, message: string): void;
    warn(facts: object, message: string): void;
    error(facts: object, message: string): void;
  };
}

/** The payment that one run's commands act on. */
export interface Subject {
  readonly payment: Omit<NewPayment, "signature" | "fingerprint" | "digest" | "paymentId">;
  readonly signature: () => Promise<Hex | null>;
  /** The extensions in its request; undefined if there are none, or no request. */
  readonly extensions?: Extensions | undefined;
  /** Returns the data to store with a payment before its submission; null while that is unavailable. */
  readonly bring: () => Promise<Kept | null>;
  readonly insert: (token: string) => Promise<Entered>;
  /** Removes the abandoned payment under the same identifier. */
  readonly free: () => Promise<number>;
}

/** Executes the commands of one run under one lease token, kept alive until `end`. */
export function beginCommands(parts: PaymentParts, subject: Subject) {
  const { journal } = parts;
  const { key } = subject.payment;
  const token = parts.newToken();
  const lease = keepLease(parts, key, token);
  let submitted = false;
  let completion: Completion | null = null;
  let kept: Kept | null = null;
  /** The index of the reading that did not refuse the payment. Submission reads from the same node. */
  let accepted = 0;

  const execute = async (command: Exclude<Command, { type: "answer" }>): Promise<StepEvent> => {
    switch (command.type) {
      case "free":
        return written(parts, key, subject.free());
      case "insert":
        return written(parts, key, subject.insert(token));
      case "take":
        return written(parts, key, journal.take(key, command.seen, token));
      case "revive":
        kept = await brought(parts, subject);
        return kept === null ? { type: "unavailable" } : written(parts, key, journal.revive(key, token, kept));
      case "release":
        return written(parts, key, journal.release(key, token, command.failed));
      case "write":
        if (command.to !== "settling" || !command.from.includes("received"))
          return written(parts, key, journal.write(key, token, command));
        kept = await brought(parts, subject);
        return kept === null
          ? { type: "unavailable" }
          : written(parts, key, journal.write(key, token, { ...command, kept }));
      case "preflight":
        return preflight(parts, subject, (reading) => {
          accepted = reading;
        });
      case "look":
        return look(parts, subject, submitted);
      case "submit":
        submitted = true;
        return asReading(accepted, () => submit(parts, subject, token));
      case "handle": {
        const selling = { settlement: command.settlement, noted: command.noted, signal: lease.lost };
        const sold = await sell(parts, { ...subject.payment, ...kept }, selling);
        if (typeof sold === "string") return { type: sold };
        completion = sold;
        return { type: "handled" };
      }
      case "complete":
        return complete(parts, { key, token, completion, settlement: command.settlement });
      default:
        return command satisfies never;
    }
  };
  return { execute, end: lease.end };
}

/** Renews the lease; `lost` aborts once another process has taken over the payment. */
function keepLease({ journal }: PaymentParts, key: PaymentKey, token: string): { lost: AbortSignal; end: () => void } {
  const lost = new AbortController();
  const beat = async () => {
    const rows = await journal.heartbeat(key, token).catch(() => 1);
    if (rows === 0) lost.abort();
  };
  return { lost: lost.signal, end: every(HEARTBEAT_MS, beat) };
}

async function written(parts: PaymentParts, { payer, nonce }: PaymentKey, write: Promise<Entered>): Promise<StepEvent> {
  try {
    const rows = await write;
    if (typeof rows === "object") return { type: "barred", seconds: rows.barredSeconds };
    return rows === "crowded" ? { type: "crowded" } : { type: "written", rows };
  } catch (error) {
    parts.log.error({ err: error, payer, nonce }, NOT_ACKNOWLEDGED);
    return { type: "writeUnknown" };
  }
}

/** A payment in the form its scheme expects, rebuilt as it was presented. */
const signedBy = ({ payment: { key, payTo, value, validAfter, validBefore, details } }: Subject, signature: Hex) => ({
  network: key.network,
  authorization: { from: key.payer, to: payTo, value, validAfter, validBefore, nonce: key.nonce },
  signature,
  details,
});

/** Returns the scheme with this name. A journal row with an unknown scheme is our own bug. */
export function schemeNamed({ schemes }: Pick<PaymentParts, "schemes">, name: string): Scheme {
  const scheme = schemes.get(name);
  if (scheme === undefined) throw new Error(`no payment scheme is called ${name}`);
  return scheme;
}

const schemeOf = (parts: PaymentParts, { payment }: Subject): Scheme => schemeNamed(parts, payment.scheme);

/**
 * Simulates the settlement on our own node, because a remote `verify` would reveal the signature. A refusal is final,
 * so it takes several readings.
 */
const preflight = (parts: PaymentParts, subject: Subject, read: (reading: number) => void): Promise<StepEvent> =>
  readAgain(
    (reading) => {
      read(reading - 1);
      return preflightOnce(parts, subject);
    },
    (seen) => seen.type === "preflight" && seen.outcome === "refused",
  );

async function preflightOnce(parts: PaymentParts, subject: Subject): Promise<StepEvent> {
  try {
    const signature = await subject.signature();
    if (signature === null) return { type: "unavailable" };
    const { validBefore } = subject.payment;
    const { simulate, worded } = schemeOf(parts, subject);
    const simulated = simulate(signedBy(subject, signature));
    const [kept, { refused, head }, short] = await Promise.all([
      brought(parts, subject),
      simulated,
      shortfall(parts, subject.payment),
    ]);
    if (refused === null && short !== null)
      return { type: "preflight", outcome: "refused", ...worded("short of funds", short) };
    if (refused === null) {
      const isOpen = windowOpen(validBefore, laterOf(parts.now(), head.time));
      return isOpen && kept === null
        ? { type: "unavailable" }
        : { type: "preflight", outcome: "ok", windowOpen: isOpen };
    }
    const view = await read(parts, subject);
    return view.nonce === "paid"
      ? { type: "preflight", outcome: "paid" }
      : { type: "preflight", outcome: "refused", ...refused };
  } catch (error) {
    parts.log.warn({ err: error }, "the settlement could not be simulated");
    return { type: "unavailable" };
  }
}

const brought = ({ log }: PaymentParts, { bring }: Subject): Promise<Kept | null> =>
  bring().catch((error: unknown) => {
    log.warn({ err: error }, "a request could not be admitted");
    return null;
  });

async function read(parts: PaymentParts, subject: Subject, justSubmitted = false): Promise<View> {
  const { key, payTo, value, validAfter, validBefore, headBlock } = subject.payment;
  const { payer, nonce } = key;
  const expected = { payer, nonce, payTo, value, validAfter, validBefore, fromBlock: headBlock, justSubmitted };
  return schemeOf(parts, subject).look(key.network, expected);
}

/** Looks repeatedly, because nodes lag by different amounts and a settlement may appear late. */
async function look(parts: PaymentParts, subject: Subject, submitted: boolean): Promise<StepEvent> {
  const began = elapsedMs();
  for (let pause = 50; ; pause = Math.min(pause * 2, 500)) {
    const seen = await lookOnce(parts, subject, submitted);
    const patience = submitted ? patienceFor(seen, parts.patienceMs) : 0;
    if (elapsedMs() - began >= patience) return seen;
    await sleep(pause);
  }
}

function patienceFor(seen: StepEvent, patienceMs: number): number {
  if (seen.type !== "chain" || seen.view.nonce === "spent") return DISAGREEMENT_MS;
  return seen.view.nonce === "unused" ? patienceMs : 0;
}

async function lookOnce(parts: PaymentParts, subject: Subject, submitted: boolean): Promise<StepEvent> {
  const { validBefore, key, receivedAt } = subject.payment;
  const waitedMs = Math.max(0, parts.now().getTime() - receivedAt.getTime());
  try {
    const [view, { time }] = await asReading(Math.floor(waitedMs / NEXT_NODE_MS), async () => [
      await read(parts, subject, submitted),
      await parts.chains[key.network].head(),
    ]);
    return { type: "chain", view, windowOpen: windowOpen(validBefore, laterOf(parts.now(), time)) };
  } catch (error) {
    parts.log.warn({ err: error }, "the chain could not be read");
    return { type: "unavailable" };
  }
}

async function submit(parts: PaymentParts, subject: Subject, token: string): Promise<StepEvent> {
  const { key, route } = subject.payment;
  try {
    const signature = await subject.signature();
    const resource = resourceOf(parts.baseUrl, parts.routes.get(route) ?? { path: "/", description: "" });
    const context = { resource, extensions: subject.extensions, lease: { key, token } };
    if (signature !== null) await schemeOf(parts, subject).submit({ ...signedBy(subject, signature), ...context });
  } catch (error) {
    if (error instanceof TurnedAway) {
      parts.log.warn({ err: error, payer: key.payer, nonce: key.nonce }, "a payment was turned away");
      return { type: "turnedAway", because: error.because };
    }
    // A failure decides nothing, because the transfer may have been broadcast anyway. Only the chain tells.
    parts.log.warn({ err: error, payer: key.payer, nonce: key.nonce }, "the settlement reported a failure");
  }
  return { type: "submitted" };
}

interface Sold extends Pick<Sale<unknown>, "settlement" | "signal"> {
  /** Whether the settlement is stored. */
  readonly noted: boolean;
}

/**
 * Makes the sale of a settled payment. Returns `notImmediate` without starting it if the sale may wait or is visible to
 * others, because its settlement must be stored first.
 */
async function sell(
  { routes, log }: PaymentParts,
  payment: Subject["payment"],
  { settlement, noted, signal }: Sold,
): Promise<Completion | "notImmediate" | "handleFailed"> {
  const { key, version, payTo, value, validAfter, validBefore, receivedAt, input, details } = payment;
  const about = { payTo, value, validAfter, validBefore, receivedAt, input, details };
  const sale = { payment: key, version, ...about, settlement, signal };
  try {
    const route = routes.get(payment.route);
    if (route === undefined) throw new Error(`no route is called ${payment.route}`);
    if ("immediate" in route.sell) return route.sell.immediate(sale);
    return noted ? await route.sell(sale) : "notImmediate";
  } catch (error) {
    log.error(
      { err: error, route: payment.route, payer: key.payer, nonce: key.nonce },
      "a paid request could not be handled; it will be retried",
    );
    return "handleFailed";
  }
}

interface Completing {
  readonly key: PaymentKey;
  readonly token: string;
  readonly completion: Completion | null;
  readonly settlement: Settlement | null;
}

async function complete({ journal, log }: PaymentParts, completing: Completing): Promise<StepEvent> {
  const { key, token, completion, settlement } = completing;
  if (completion === null) throw new Error("a sale cannot be completed before it is made");
  const { payer, nonce } = key;
  try {
    const response = await journal.complete(key, token, { completion: bounded(completion), settlement });
    return response === null ? { type: "written", rows: 0 } : { type: "completed", response };
  } catch (error) {
    const isUndone = error instanceof NotStored;
    log.error({ err: error, payer, nonce }, isUndone ? "a sale could not be completed" : NOT_ACKNOWLEDGED);
    return { type: isUndone ? "handleFailed" : "writeUnknown" };
  }
}

const bounded = (completion: Completion): Completion =>
  "answer" in completion
    ? { ...completion, answer: withinBounds(completion.answer) }
    : { ...completion, complete: async (transaction) => withinBounds(await completion.complete(transaction)) };

/** Returns the response, or throws if it is too large for the journal. */
export function withinBounds(answer: StoredAnswer): StoredAnswer {
  if (answer.body.length > MAX_RESPONSE_BYTES)
    throw new NotStored(`a response has ${answer.body.length} bytes; the journal stores at most ${MAX_RESPONSE_BYTES}`);
  return answer;
}

/**
 * Returns the chain's view of a payment, including whether our own transaction was mined without settling it, and who
 * caused that. A stranger's copy may have been mined first. Ours then reverts because the nonce is used, while a
 * lagging node still shows it unused. So a failure counts only if the nonce is unused after its block.
 */
export async function lookFor(chain: Chain, expected: Expected, failed: () => Promise<Hex | null>): Promise<View> {
  const view = await chain.look(expected);
  const transaction = view.nonce === "unused" ? await failed() : null;
  if (transaction === null) return view;
  const { isUnused, isPayersDoing } = await chain.afterFailure({ ...expected, transaction });
  if (!isUnused) return { nonce: "spent" };
  return isPayersDoing ? { nonce: "reverted", transaction } : { nonce: "reverted", transaction, excused: true };
}
