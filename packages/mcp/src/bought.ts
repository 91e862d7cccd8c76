import { type Address, isAddressEqual } from "viem";
import { AGAIN, openUntil, type PaidOutput, priceOf, toPay } from "./paid-output.ts";
import type { PendingPayment } from "./pending-payments.ts";
import { parseJson, problemOf, type ServiceAnswer, ServiceError } from "./service.ts";
import { settlementOf, termsOf } from "./stock-client.ts";

/** The purchase, and the part of the tool's output about its cost. */
export interface Bought {
  readonly text: string;
  readonly document: unknown;
  readonly paid: PaidOutput;
  /** Builds the error about a payment whose response cannot be trusted. */
  readonly refuse: (reason: string) => UntrustedAnswer;
  /** Builds the error about a response that cannot be checked now. */
  readonly unchecked: (cause: Error) => StillKept;
}

/** Thrown for a paid response that a genuine service would not return. */
export class UntrustedAnswer extends Error {}

/** Thrown if the service reports that a payment bought nothing. */
class NothingSold extends ServiceError {}

/** Thrown after a payment whose retry may get a better response. */
export class StillKept extends ServiceError {}

/** The response to a payment that was sent. */
export interface Answered {
  readonly path: string;
  readonly payment: PendingPayment;
  /** Whether this call signed it. */
  readonly isNew: boolean;
  readonly payer: Address;
  readonly budget: NonNullable<PaidOutput["budget"]>;
  /** The file with the stored payment. */
  readonly file: string;
  readonly answer: ServiceAnswer;
}

/** @throws ServiceError about the signed payment, if nothing was sold or the response cannot be read */
export function bought(answered: Answered): Bought {
  const { answer, payment, isNew, payer, budget, file } = answered;
  const { transaction, network, document } = opened(answered);
  const settlement = { transaction, network, payer };
  const paid = { status: "paid", price: priceOf(payment), budget, settlement } as const;
  const what = `Paid ${toPay(payment)} (transaction ${transaction})`;
  return {
    text: answer.text,
    document,
    paid: isNew ? paid : { ...paid, signed_at: payment.signedAt },
    refuse: (reason) =>
      new UntrustedAnswer(`${what}, but the answer was withheld: ${reason} ${AGAIN} ${onceMore(file)}`),
    unchecked: (cause) =>
      new StillKept(`${what}, but the answer could not be checked: ${cause.message} ${AGAIN}`, { cause }),
  };
}

/** Tells the user how to proceed after a payment that was charged without a result. */
export const onceMore = (file: string): string => `To buy this again anyway, the user removes the file ${file}.`;

function opened({ answer, path, payment, isNew, payer }: Answered) {
  const whose = isNew ? "and counts against the session's budget" : "by an earlier call";
  const counts = `A payment of ${toPay(payment)} was signed ${whose}.`;
  if (answer.status !== 200)
    throw new NothingSold(`${path}: ${refusalOf(answer)} ${counts} ${openUntil(payment)} ${AGAIN}`);
  try {
    const { success, transaction, network, ...settled } = settlementOf(answer.headers);
    if (!success) throw new ServiceError("the service reports that nothing was settled.");
    if (network !== payment.network || !isAddressEqual((settled.payer ?? payer) as Address, payer))
      throw new ServiceError("the answer is for a different payment.");
    return { transaction, network, document: parseJson(answer, path) };
  } catch (cause) {
    const { message } = cause as Error;
    throw new StillKept(`${path}: ${message} ${counts} ${openUntil(payment)} ${AGAIN}`, { cause });
  }
}

/** Returns the service's reason for refusing. A 402 states it in its terms. */
export const refusalOf = (answer: ServiceAnswer): string => {
  const error = answer.status === 402 ? errorOf(answer) : undefined;
  return error === undefined ? problemOf(answer) : `the service answered 402: ${error.slice(0, 500)}`;
};

export const errorOf = ({ headers }: ServiceAnswer): string | undefined => {
  try {
    return termsOf(headers).error;
  } catch {
    return undefined;
  }
};
