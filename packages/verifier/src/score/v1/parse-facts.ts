import { InputError } from "../../refusal.ts";
import type { Json } from "../../strict-json.ts";
import { list, matching, nullable, object, oneOf, type Parse, text, whole } from "../parsers.ts";
import { MAX_PAYEES, QUALIFYING_PAYMENT } from "./bands.ts";
import {
  type Account,
  type CertificateFact,
  type ChainFactsOf,
  dayOf,
  type EscrowFacts,
  type PayeeFact,
  type PaymentFacts,
  type Product,
  type ScoreFacts,
  type ScoreFactsOf,
  type TransactionHash,
  windowAt,
} from "./facts.ts";

/** The only way to write a time with a four-digit year; null if the text is not a time. */
const isoTime = (value: string): string | null =>
  /^\d{4}-/.test(value) && !Number.isNaN(Date.parse(value)) ? new Date(value).toISOString() : null;

const account = matching<Account>(/^0x[0-9a-f]{40}$/, "a lowercase address");
export const transaction = matching<TransactionHash>(/^0x[0-9a-f]{64}$/, "a lowercase transaction hash");
const amount = matching(/^(0|[1-9]\d{0,77})$/, "atomic units of USDC as a decimal string");
const time = text((value) => isoTime(value) === value, "a UTC time like 2026-11-25T09:30:00.000Z");
const day = text((value) => isoTime(value) === `${value}T00:00:00.000Z`, "a UTC day like 2026-11-25");
const pageUrl = text(
  (value) => URL.canParse(value) && new URL(value).href === value && /^https?:/.test(value),
  "a normalized http or https URL",
);

/** The tests that versions 1 and 2 know. */
const TESTS: readonly Product[] = ["basic", "suite", "scam", "recipient"];

const certificateOf = (tests: readonly Product[]) =>
  object<CertificateFact>({
    id: matching(/^[\w-]{1,64}$/, "letters, digits, hyphens, and underscores"),
    url: pageUrl,
    product: oneOf(...tests),
    result: oneOf("pass", "fail"),
    issued_at: time,
    valid_until: time,
    reversed_at: nullable(time),
  });

const payments = object<PaymentFacts>({
  days: list(object<PaymentFacts["days"][number]>({ day, count: whole(1), value: amount }), {
    identity: (entry) => entry.day,
  }),
  last: nullable(object<NonNullable<PaymentFacts["last"]>>({ at: time, tx: transaction })),
});

const payee = object<PayeeFact>({
  payee: account,
  value: amount,
  first_at: time,
  last_at: time,
  last_tx: transaction,
  returned: amount,
  funder_at_floor: nullable(account),
  other_funders: nullable(whole(0)),
  unfunded_payers: nullable(whole(0)),
});

const escrow = object<EscrowFacts>({
  release_payers: whole(0),
  last_release_tx: nullable(transaction),
  refunds_against: whole(0),
  last_refund_tx: nullable(transaction),
});

/** The common part of all versions' parsers; `consistent` are the rules within the facts of the wallet as merchant. */
export function parserOf<Escrow>(
  escrow: Parse<Escrow>,
  consistent: (escrow: Escrow) => readonly Statement[],
  tests = TESTS,
): (value: Json | undefined, path?: string) => ScoreFactsOf<Escrow> {
  const chain = object<ChainFactsOf<Escrow>>({
    network: matching(/^[-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}$/, "a CAIP-2 chain like eip155:8453"),
    scope: oneOf("full", "authorised"),
    first_block: whole(0),
    window: object<ChainFactsOf<Escrow>["window"]>({ from: day, to: day }),
    payments,
    largest_funder: nullable(account),
    payees: list(payee, { identity: (entry) => entry.payee, max: MAX_PAYEES }),
    escrow,
  });
  const scoreFacts = object<ScoreFactsOf<Escrow>>({
    wallet: account,
    as_of: time,
    as_of_block: whole(0),
    certificates: list(certificateOf(tests), { identity: (entry) => entry.id }),
    chain,
  });
  return (value, path = "inputs") => {
    const facts = scoreFacts(value, path);
    for (const [holds, where, expected] of [...statements(facts), ...consistent(facts.chain.escrow)])
      if (!holds) throw new InputError(`${path}.${where}: expected ${expected}`);
    return facts;
  };
}

/**
 * The facts of a score from untrusted JSON: exactly the members of `ScoreFacts`, none missing, none added, and no two
 * that contradict each other.
 * @throws InputError that names the place, like `inputs.chain.payees[3].value`
 */
export const parseScoreFacts: (value: Json | undefined, path?: string) => ScoreFacts = parserOf(escrow, ofEscrow);

/** A rule, where it applies within the facts, and what it expects. */
export type Statement = readonly [holds: boolean, where: string, expected: string];

/** The consistency rules between members. */
function statements({ wallet, as_of, as_of_block, certificates, chain }: ScoreFactsOf<unknown>): readonly Statement[] {
  const { from, to } = windowAt(as_of);
  const { window } = chain;
  return [
    [window.from === from && window.to === to, "chain.window", `the 90 days from ${from} to ${to}, given as_of`],
    [chain.first_block <= as_of_block, "chain.first_block", "no block after as_of_block"],
    [chain.scope === "full" || chain.largest_funder === null, "chain.largest_funder", "null in scope authorised"],
    ...certificates.map(
      ({ issued_at, valid_until }, index): Statement => [
        issued_at < valid_until,
        `certificates[${index}].valid_until`,
        "a time after issued_at",
      ],
    ),
    ...ofPayments(chain, as_of),
    ...chain.payees.flatMap((entry, index) => ofPayee(entry, `chain.payees[${index}]`, { wallet, as_of, chain })),
  ];
}

function ofPayments({ payments: { days, last }, window }: ChainFactsOf<unknown>, asOf: string): readonly Statement[] {
  const lastDay = days
    .map(({ day }) => day)
    .toSorted()
    .at(-1);
  return [
    ...days.flatMap(({ day, count, value }, index): readonly Statement[] => {
      const where = `chain.payments.days[${index}]`;
      const least = BigInt(count) * BigInt(QUALIFYING_PAYMENT);
      return [
        [day >= window.from && day <= window.to, `${where}.day`, "a day of the window"],
        [BigInt(value) >= least, `${where}.value`, `at least ${least}, for payments of at least ${QUALIFYING_PAYMENT}`],
      ];
    }),
    [
      last === null ? lastDay === undefined : dayOf(last.at) === lastDay && last.at <= asOf,
      "chain.payments.last",
      "a time on the last of these days and not after as_of, or null if there are no days",
    ],
  ];
}

function ofPayee(
  { payee, first_at, last_at, funder_at_floor, other_funders, unfunded_payers }: PayeeFact,
  where: string,
  { wallet, as_of, chain }: Pick<ScoreFactsOf<unknown>, "wallet" | "as_of" | "chain">,
): readonly Statement[] {
  const known = chain.scope === "full";
  return [
    [payee !== wallet, `${where}.payee`, "an address other than the wallet"],
    [first_at <= last_at && last_at <= as_of, `${where}.last_at`, "a time from first_at to as_of"],
    [known || funder_at_floor === null, `${where}.funder_at_floor`, "null in scope authorised"],
    [(other_funders !== null) === known, `${where}.other_funders`, "null in scope authorised, and only there"],
    [(unfunded_payers !== null) === known, `${where}.unfunded_payers`, "null in scope authorised, and only there"],
  ];
}

function ofEscrow({
  release_payers,
  last_release_tx,
  refunds_against,
  last_refund_tx,
}: EscrowFacts): readonly Statement[] {
  const [releases, refunds] = ["chain.escrow.last_release_tx", "chain.escrow.last_refund_tx"];
  return [
    [(last_release_tx === null) === (release_payers === 0), releases, "null if and only if nothing was released"],
    [(last_refund_tx === null) === (refunds_against === 0), refunds, "null if and only if nothing was refunded"],
  ];
}
