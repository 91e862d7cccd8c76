import type { z } from "zod";
import type { Chain } from "../platform/chain/view.ts";
import type { PaidRoute } from "../platform/http/route.ts";
import type { FieldError } from "../platform/http/schema.ts";
import { formatUsd } from "../platform/money.ts";
import { NETWORKS, type Network } from "../platform/networks.ts";
import { isStorable } from "./header.ts";
import type { Journal, NewPayment } from "./journal.ts";
import type { PresentedPayment } from "./scheme.ts";
import type { Answer } from "./step-types.ts";

/** The parsed input of a route, or the refusal of its body. */
export type Admitted = { readonly input: unknown } | { readonly refused: Answer };

interface Asked {
  readonly route: PaidRoute;
  /** Undefined if its bytes are not JSON. */
  readonly body: unknown;
}

interface Signed extends Pick<Asked, "route"> {
  readonly payment: PresentedPayment;
  /** The key that the sender's requests are counted under. */
  readonly client: string;
}

const UNFIT = "The body is not valid for this route. Nothing was charged.";

/** Parses a request's body with its route's schema. */
export function readForm({ route, body }: Asked): Admitted {
  if (body === undefined) return malformed("The body is not JSON.");
  if (!isStorable(body))
    return malformed("The body is nested too deeply, or contains U+0000 or an unpaired surrogate.");
  const parsed = route.input.safeParse(body ?? undefined);
  if (parsed.success) return { input: parsed.data };
  const type = parsed.error.issues.every((issue) => issue.code === "custom") ? "unacceptable" : "malformed";
  return { refused: { type, detail: UNFIT, errors: parsed.error.issues.map(fieldError) } };
}

/** Checks the input against the chain and the index, for signed payments only. */
export async function takeIn(form: Admitted, { route, payment, client }: Signed): Promise<Admitted> {
  if ("refused" in form) return form;
  const { from, nonce } = payment.authorization;
  const taken = route.intake ? await route.intake(form.input, from, { client, nonce }) : form;
  if ("refused" in taken) return { refused: { type: "unacceptable", detail: UNFIT, errors: taken.refused } };
  if ("unavailable" in taken) return { refused: { type: "unavailable", detail: taken.unavailable } };
  return { input: taken.input ?? null };
}

const malformed = (detail: string): Admitted => ({ refused: { type: "malformed", detail } });

function fieldError(issue: z.core.$ZodIssue): FieldError {
  const rule = issue.code === "custom" ? issue.params?.rule : undefined;
  const error = { path: issue.path.join("."), message: issue.message };
  return typeof rule === "number" ? { ...error, rule } : error;
}

interface Parts {
  readonly journal: Pick<Journal, "inFlightBefore">;
  readonly chains: Readonly<Record<Network, Pick<Chain, "funds">>>;
}

/**
 * Explains why a payer's balance does not cover this payment plus the earlier ones in flight; null if it does. Each of
 * them alone would pass a simulation. The balance and the nonces are read at one block, so that a payment that settles
 * meanwhile is counted once.
 */
export async function shortfall(
  { journal, chains }: Parts,
  { key, value }: Pick<NewPayment, "key" | "value">,
): Promise<string | null> {
  const { network, payer } = key;
  const others = await journal.inFlightBefore(key);
  if (others.length === 0) return null;
  const { balance, unused } = await chains[network].funds(
    payer,
    others.map(({ nonce }) => nonce),
  );
  const open = others.filter(({ nonce }) => unused.includes(nonce));
  const promised = open.reduce((sum, other) => sum + other.value, 0n);
  if (promised + value <= balance) return null;
  const [has, needs, wants] = [balance, promised, value].map(
    (amount) => `${formatUsd(amount)} ${NETWORKS[network].money}`,
  );
  return `The payer's balance of ${has} does not cover this payment of ${wants} and its ${open.length} others in flight (${needs}). Wait until those have settled, or add funds, and sign a new one.`;
}
