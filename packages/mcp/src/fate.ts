import type { Carried } from "./carried-authorization.ts";
import { type Service, ServiceError } from "./service.ts";
import { readSettlement, type Settlement } from "./settlement.ts";

/** What the chain says of a signed payment. Only one that is over, for good, may be followed by another. */
export type SignedPaymentState =
  | { readonly type: "over" }
  | { readonly type: "open"; readonly why: string }
  | { readonly type: "charged"; readonly why: string };

/** Never throws what the other side makes of it: a fate that cannot be read is open. */
export type AskPaymentState = (carried: Carried) => Promise<SignedPaymentState>;

const MOST_SHOWN = 500;

/** What the service says. It is trusted with it, as far as its answer agrees with itself and with the question. */
export const askService =
  (service: Service): AskPaymentState =>
  async (carried) => {
    const said = await settlementBy(service, carried);
    if (said instanceof ServiceError)
      return { type: "open", why: `what became of it cannot be read: ${said.message.slice(0, MOST_SHOWN)}` };
    const means = `the service says of the chain: ${said.means.slice(0, MOST_SHOWN)}`;
    if (said.status === "settled") return { type: "charged", why: means };
    if (!isOver(said)) return { type: "open", why: means };
    const inconsistency = inconsistencyOf(said, carried);
    return inconsistency === null ? { type: "over" } : { type: "open", why: inconsistency };
  };

/** What the service says of an authorization, or why it says nothing. */
export const settlementBy = (
  service: Service,
  { network, from, nonce, validBefore }: Carried,
): Promise<Settlement | ServiceError> =>
  readSettlement(service, { network, from, nonce, valid_before: String(validBefore) }).catch((error: unknown) => {
    if (error instanceof ServiceError) return error;
    throw error;
  });

/** Unused and out of its window is not enough: before a final block shows that, a reorganization may still settle it. */
const isOver = ({ status, final }: Settlement): boolean =>
  final && (status === "expired" || status === "canceled" || status === "replaced");

/** A cache in between, or a slip of the service, may have answered another question. */
function inconsistencyOf(said: Settlement, { from, nonce, validBefore }: Carried): string | null {
  const isAbout = isSameHex(said.from, from) && isSameHex(said.nonce, nonce);
  if (!isAbout) return "the service's answer is about another authorization.";
  if (said.status !== "expired") return null;
  const end = Date.parse(said.final_block?.time ?? "");
  if (said.valid_before !== String(validBefore) || !(end >= Number(validBefore) * 1_000))
    return "the service calls it expired, and names no final block that shows it.";
  // The clock that set the end has not come to it: a final block is a quarter of an hour older than its time of day.
  return Date.now() < Number(validBefore) * 1_000 ? "the service calls it expired before its end." : null;
}

const isSameHex = (one: string | undefined, other: string): boolean => one?.toLowerCase() === other.toLowerCase();
