import { type Address, isAddressEqual } from "viem";
import { AGAIN, openUntil, type PaidOutput, priceOf, toPay } from "./paid-output.ts";
import type { PendingPayment } from "./pending-payments.ts";
import { parseJson, problemOf, type ServiceAnswer, ServiceError } from "./service.ts";
import { settlementOf, termsOf } from "./stock-client.ts";

/** The purchase, and the part of the tool's answer that says what it cost. */
export interface Bought {
  readonly text: string;
  readonly document: unknown;
  readonly paid: PaidOutput;
  /** Builds the error that names what was paid for an answer that cannot be trusted. */
  readonly refuse: (reason: string) => UntrustedAnswer;
  /** Builds the error for an answer that cannot be checked now. */
  readonly unchecked: (cause: Error) => StillKept;
}

/** Paid for, but the answer is not what a genuine service returns. */
export class UntrustedAnswer extends Error {}

/** The service's word on a payment that bought nothing. */
class NothingSold extends ServiceError {}

/** Paid for, and the same payment may get a better answer. */
export class StillKept extends ServiceError {}

/** An answer to a payment that was sent. */
export interface Answered {
  readonly path: string;
  readonly payment: PendingPayment;
  /** This call signed it. */
  readonly isNew: boolean;
  readonly payer: Address;
  readonly budget: NonNullable<PaidOutput["budget"]>;
  /** Where the payment is kept. */
  readonly file: string;
  readonly answer: ServiceAnswer;
}

/** @throws ServiceError that says what was signed, if nothing was sold or the answer cannot be read */
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

/** How to get over a payment that was charged for nothing. */
export const onceMore = (file: string): string =>
  `To buy this once more all the same, the user removes the file ${file}.`;

function opened({ answer, path, payment, isNew, payer }: Answered) {
  const whose = isNew ? "and counts against the session's budget" : "by an earlier call";
  const counts = `A payment of ${toPay(payment)} was signed ${whose}.`;
  if (answer.status !== 200)
    throw new NothingSold(`${path}: ${refusalOf(answer)} ${counts} ${openUntil(payment)} ${AGAIN}`);
  try {
    const { success, transaction, network, ...settled } = settlementOf(answer.headers);
    if (!success) throw new ServiceError("the service says nothing was settled.");
    if (network !== payment.network || !isAddressEqual((settled.payer ?? payer) as Address, payer))
      throw new ServiceError("the answer is for a payment that was not this one.");
    return { transaction, network, document: parseJson(answer, path) };
  } catch (cause) {
    const { message } = cause as Error;
    throw new StillKept(`${path}: ${message} ${counts} ${openUntil(payment)} ${AGAIN}`, { cause });
  }
}

/** Why the service refused. A 402 says it in its terms. */
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
