import type { z } from "zod";
import type { FieldError } from "../platform/http/field-error.ts";
import type { PaidRoute } from "../platform/http/route.ts";
import type { PresentedPayment } from "./scheme.ts";
import type { Answer } from "./step-types.ts";
import { isStorable } from "./storable.ts";

/** What a route takes as its input, or why it takes nothing. */
export type Admitted = { readonly input: unknown } | { readonly refused: Answer };

interface Asked {
  readonly route: PaidRoute;
  readonly body: { readonly value: unknown } | undefined;
}

interface Signed extends Pick<Asked, "route"> {
  readonly payment: PresentedPayment;
  /** The key that its sender is counted under. */
  readonly client: string;
}

const UNFIT = "The body is not valid for this route. Nothing was charged.";

/** Reads a request's body as its route does. */
export function readForm({ route, body }: Asked): Admitted {
  if (body === undefined) return malformed("The body is not JSON.");
  if (!isStorable(body.value))
    return malformed("The body is nested too deeply, or contains U+0000 or an unpaired surrogate.");
  const parsed = route.input.safeParse(body.value ?? undefined);
  if (parsed.success) return { input: parsed.data };
  const say = parsed.error.issues.every((issue) => issue.code === "custom") ? "unacceptable" : "malformed";
  return { refused: { say, detail: UNFIT, errors: parsed.error.issues.map(fieldError) } };
}

/** Then what only the chain or the index can tell about it; for signed payments alone. */
export async function takeIn(form: Admitted, { route, payment, client }: Signed): Promise<Admitted> {
  if ("refused" in form) return form;
  const { from, nonce } = payment.authorization;
  const taken = route.intake ? await route.intake(form.input, from, { client, nonce }) : form;
  if ("refused" in taken) return { refused: { say: "unacceptable", detail: UNFIT, errors: taken.refused } };
  if ("unavailable" in taken) return { refused: { say: "unavailable", detail: taken.unavailable } };
  return { input: taken.input ?? null };
}

const malformed = (detail: string): Admitted => ({ refused: { say: "malformed", detail } });

function fieldError(issue: z.core.$ZodIssue): FieldError {
  const rule = issue.code === "custom" ? issue.params?.rule : undefined;
  const error = { path: issue.path.join("."), message: issue.message };
  return typeof rule === "number" ? { ...error, rule } : error;
}
