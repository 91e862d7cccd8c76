import { z } from "zod";
import { address, time, transactionHash, url, usd } from "../../platform/http/schema.ts";
import { BEHAVIORAL_PRODUCTS } from "../products.ts";
import { CHECKS, certificateId, DETECTED, LINKS, result } from "../schemas.ts";
import type { complete, incomplete, ordered, started } from "./answers.ts";

export const NEXT = z.object({
  method: z.literal("POST"),
  url,
  cost: usd,
  body: z.object({ wallet: address, session: z.string().exactOptional() }).exactOptional(),
});

export const ANSWER_MEMBERS = {
  product: z.enum(BEHAVIORAL_PRODUCTS),
  wallet: address,
  armed: z.boolean().meta({ description: "True while the session is open." }),
  message: z.string(),
};

const offered = z.int().min(0).max(2);

export const UNDER_WAY = z.object({
  status: z.enum(["action_required", "incomplete"]),
  ...ANSWER_MEMBERS,
  next: NEXT,
  deliverable: z.discriminatedUnion("type", [
    z.object({ type: z.literal("session"), id: certificateId, orders: z.literal(2), lapses_at: time }),
    z.object({ type: z.literal("order"), paid: usd, transaction: transactionHash, explorer_url: url }),
    z.object({
      type: z.literal("progress"),
      orders_offered: offered,
      orders_paid: offered,
      window_ends: time.exactOptional().meta({ description: "From then on the result may be a PASS." }),
    }),
  ]),
}) satisfies z.ZodType<ReturnType<typeof started | typeof ordered | typeof incomplete>>;

const COMPLETE = z.object({
  status: z.literal("complete"),
  ...ANSWER_MEMBERS,
  next: z.null(),
  deliverable: z.object({ type: z.literal("certificate"), id: certificateId, ...LINKS }),
  conformance: z.boolean(),
  verdict: result,
  level: z.string(),
  checks: CHECKS,
  detected: DETECTED,
  issued_at: time,
  valid_until: time,
  ...LINKS,
}) satisfies z.ZodType<ReturnType<typeof complete>>;

export const STEP = z
  .discriminatedUnion("status", [UNDER_WAY, COMPLETE])
  .meta({ id: "TestStep", description: "The next step, or the verdict with its certificate." });

export const RESULT_BODY = z.object({ wallet: z.string(), session: z.string().optional() });

/** The input of an order, as the journal stores it: its session, and the token for the answer's `next.url`. */
export const ORDER_INPUT = z.object({ session: z.string(), token: z.string().nullable() });
export type OrderInput = z.infer<typeof ORDER_INPUT>;
