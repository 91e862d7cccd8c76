import { NETWORKS } from "../kernel/networks.ts";
import type { PaidRoute } from "../kernel/route.ts";
import type { Address, Hex } from "../kernel/wallet.ts";
import { authorizationDigest } from "./authorization.ts";
import { termsError } from "./check.ts";
import type { PresentedPayment } from "./header.ts";
import { isKeepable } from "./keepable.ts";
import type { Chain, NewPayment } from "./ports.ts";
import { beginCommands, laterOf, type PaymentParts, type Subject } from "./service.ts";
import { isAccountSignature, signatureSha256 } from "./signature.ts";
import { START, step } from "./step.ts";
import type { Answer, Event } from "./step-types.ts";

/** How long a request waits for another process that works on the same payment. */
const WAIT_MS = 20_000;

export interface GateParts extends PaymentParts {
  readonly payTo: Address;
}

/** A request that carries a payment. */
export interface PaidRequest {
  readonly route: PaidRoute;
  readonly payment: PresentedPayment;
  readonly fingerprint: Buffer;
  /** The parsed body; undefined when its bytes are not JSON. */
  readonly body: { readonly value: unknown } | undefined;
}

export interface Gate {
  /** Answers a paid request. Rejects only when the journal cannot be read. */
  pay(request: PaidRequest): Promise<Answer>;
  /** Finishes what no client retries; answers how many payments it looked at. */
  resolveDue(): Promise<number>;
  /** Waits for every request under way, also those whose client hung up. */
  drain(): Promise<void>;
}

export function createGate(parts: GateParts): Gate {
  const running = new Set<Promise<unknown>>();
  const track = <T>(work: Promise<T>): Promise<T> => {
    const tracked = work.finally(() => running.delete(tracked));
    running.add(tracked);
    return tracked;
  };
  return {
    pay: (request) => track(payUntilAnswered(parts, request)),
    resolveDue: () => track(resolveDue(parts)),
    drain: async () => {
      while (running.size > 0) await Promise.allSettled([...running]);
    },
  };
}

async function payUntilAnswered(parts: GateParts, request: PaidRequest): Promise<Answer> {
  const deadline = parts.now().getTime() + WAIT_MS;
  for (let pause = 25; ; pause = Math.min(pause * 2, 250)) {
    const answer = await present(parts, request);
    const held = answer.say === "wait" && answer.because === "held";
    if (!held || parts.now().getTime() >= deadline) return answer;
    await parts.sleep(pause);
  }
}

/** One look at the payment: find the row, authenticate, check what has no row yet, then let `step` decide. */
async function present(parts: GateParts, request: PaidRequest): Promise<Answer> {
  const { route, payment } = request;
  const { authorization, signature, paymentId } = payment;
  const facts = NETWORKS[route.network];
  const key = {
    network: route.network,
    asset: facts.usdc.address,
    payer: authorization.from,
    nonce: authorization.nonce,
  };
  const digest = authorizationDigest(authorization, facts);
  const { row, sameId } = await parts.journal.find(key, paymentId);
  const same = row !== null && row.digest === digest && row.signatureSha256 === signatureSha256(signature);
  try {
    const valid = same || (await isSigned(parts.chains[route.network], authorization.from, digest, signature));
    const checked = row === null && sameId === null ? await freshChecks(parts, request) : null;
    const created: NewPayment = {
      key,
      paymentId,
      digest,
      signature,
      route: route.id,
      fingerprint: request.fingerprint,
      version: payment.version,
      validAfter: authorization.validAfter,
      validBefore: authorization.validBefore,
      input: checked?.input,
      payTo: authorization.to,
      value: authorization.value,
      headBlock: checked?.headBlock ?? 0,
      receivedAt: parts.now(),
    };
    const subject: Subject = {
      payment: row ?? created,
      signature: async () => signature,
      insert: (token) => parts.journal.insert(created, token),
    };
    return await drive(parts, subject, {
      on: "request",
      row,
      sameId,
      digest,
      fingerprint: request.fingerprint.toString("hex"),
      paymentId,
      signature: valid ? "valid" : "invalid",
      fresh: checked?.fresh ?? "ok",
    });
  } catch (error) {
    parts.log.warn({ err: error }, "the chain could not be read");
    return { say: "wait", charged: row?.state === "settled", because: "unavailable" };
  }
}

async function isSigned(chain: Chain, payer: Address, digest: Hex, signature: Hex): Promise<boolean> {
  return (
    (await isAccountSignature(payer, digest, signature)) || chain.verifyContractSignature(payer, digest, signature)
  );
}

/** The checks of a payment that has no row: signed terms and window, then the body. Nothing has moved yet. */
async function freshChecks(
  parts: GateParts,
  { route, payment, body }: PaidRequest,
): Promise<{ fresh: "ok" | Answer; input: unknown; headBlock: number }> {
  const head = await parts.chains[route.network].head();
  const wrong = termsError(
    payment,
    { network: route.network, payTo: parts.payTo, value: route.price },
    laterOf(parts.now(), head.time),
  );
  const none = { input: null, headBlock: head.number };
  if (wrong !== null) return { ...none, fresh: { say: "pay", error: wrong } };
  if (body === undefined) return { ...none, fresh: { say: "malformed", detail: "The body is not JSON." } };
  if (!isKeepable(body.value))
    return {
      ...none,
      fresh: { say: "malformed", detail: "The body nests too deep or holds U+0000 or half a surrogate pair." },
    };
  const parsed = route.input.safeParse(body.value ?? undefined);
  if (parsed.success) return { fresh: "ok", input: parsed.data ?? null, headBlock: head.number };
  const errors = parsed.error.issues.map((issue) => ({ path: issue.path.join("."), message: issue.message }));
  const refused = parsed.error.issues.every((issue) => issue.code === "custom");
  return {
    ...none,
    fresh: { say: refused ? "unacceptable" : "malformed", detail: "The body does not fit this route.", errors },
  };
}

async function resolveDue(parts: GateParts): Promise<number> {
  const rows = await parts.journal.due(32);
  for (const row of rows) {
    const subject: Subject = { payment: row, signature: () => parts.journal.signature(row.key), insert: async () => 0 };
    await drive(parts, subject, { on: "resolve", row });
  }
  return rows.length;
}

/** Runs the machine: executes a command, feeds its outcome back, stops at the answer. */
async function drive(parts: GateParts, subject: Subject, first: Event): Promise<Answer> {
  const commands = beginCommands(parts, subject);
  let run = START;
  let event = first;
  try {
    for (;;) {
      const decision = step(run, event);
      run = decision.run;
      if (decision.command.do === "answer") return decision.command.answer;
      event = await commands.execute(decision.command);
    }
  } finally {
    commands.end();
  }
}
