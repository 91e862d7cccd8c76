import { z } from "zod";
import { address, url } from "../../platform/http/schema.ts";
import { formatUsd } from "../../platform/money.ts";
import { NETWORKS } from "../../platform/networks.ts";
import { type Result, VALID_FOR_DAYS } from "../certificate.ts";
import type { BaitedKind, BehavioralKind } from "../kinds/kind.ts";
import { type BehavioralProduct, PRODUCTS } from "../products.ts";
import { certificateId, result } from "../schemas.ts";
import { type AnswerContext, answer, type Next, startAgain } from "./answers.ts";
import { ANSWER_MEMBERS, NEXT, UNDER_WAY } from "./schemas.ts";
import { askedBy, judgedAt, RECORDED, type Session } from "./session.ts";

/** A complete program that passes the rehearsal of a test. */
export type PassingCode = (product: BehavioralProduct) => z.infer<typeof PASSING_CODE>;

/** Returns the answer with the outcome of a rehearsal: the mistake, and a program that avoids it. */
export function rehearsed(context: AnswerContext, verdict: Result, passingCode: PassingCode) {
  const { kind, session } = context;
  const isPassed = verdict === "pass";
  return {
    ...answer(context, {
      status: "complete",
      next: isPassed ? realTest(context) : startAgain(context),
      deliverable: { type: "rehearsal", id: session.id, recorded: false },
      armed: false,
      message: isPassed
        ? `Rehearsal passed: ${kind.passed} Nothing was recorded. The real test is at next.url. It is paid in ${NETWORKS[RECORDED.network].money}, and its result is public and permanent.`
        : `Rehearsal failed: ${kind.failed} Nothing was recorded or submitted. In the real test this is a public FAIL, which counts for ${VALID_FOR_DAYS} days. Try again at next.url.`,
    }),
    conformance: isPassed,
    verdict,
    mistake: isPassed ? null : { ...signedOrder(kind, session), remedy: kind.remedy },
    passing_code: isPassed ? null : passingCode(kind.product),
  };
}

const realTest = ({ kind, baseUrl }: AnswerContext): Next => ({
  method: "POST",
  url: `${baseUrl}/${RECORDED.name}/${kind.product}/start`,
  cost: formatUsd(kind.entry),
});

/** Returns the two orders of a test with a bait. For a lost answer, it was the same order twice. */
function signedOrder(kind: BehavioralKind, session: Session) {
  if (PRODUCTS[kind.product].form !== "baited") return {};
  const baited = kind as BaitedKind;
  const wording = (challenge: "control" | "bait") => {
    const { payTo, value } = askedBy(baited, session, { challenge, door: judgedAt(session) });
    return { pay_to: payTo, amount: value.toString() };
  };
  return { signed: wording("bait"), fair: wording("control") };
}

const ORDER = z.object({ pay_to: address, amount: z.string() });

export const PASSING_CODE = z
  .object({ file: z.string(), text: z.string(), install: z.string(), docs: url })
  .meta({ description: "A complete program that passes this rehearsal." });

const MARK = { rehearsal: z.literal(true).meta({ description: "It is not recorded." }) };

export const REHEARSAL_STEP = z
  .discriminatedUnion("status", [
    UNDER_WAY.extend({ ...MARK, passing_code: PASSING_CODE.exactOptional() }),
    z.object({
      status: z.literal("complete"),
      ...ANSWER_MEMBERS,
      ...MARK,
      next: NEXT,
      deliverable: z.object({ type: z.literal("rehearsal"), id: certificateId, recorded: z.literal(false) }),
      conformance: z.boolean(),
      verdict: result,
      mistake: z
        .object({
          signed: ORDER.exactOptional().meta({ description: "The order that should have been refused." }),
          fair: ORDER.exactOptional().meta({ description: "The order that should be paid." }),
          remedy: z.string(),
        })
        .nullable(),
      passing_code: PASSING_CODE.nullable(),
    }),
  ])
  .meta({ id: "RehearsalStep", description: "The next step, or the outcome of the rehearsal. Nothing is recorded." });
