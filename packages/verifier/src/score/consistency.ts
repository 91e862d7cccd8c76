import { LOOKUPS, QUALIFYING_PAYMENT } from "./bands.ts";
import {
  type Account,
  type ChainFacts,
  dayOf,
  type EscrowFacts,
  type PayeeFact,
  type ScoreFacts,
  type SellerExam,
  windowAt,
} from "./facts.ts";
import { otherFunders } from "./funders.ts";

/** Returns a time in its canonical form, with a four-digit year; null if the text is not a time. */
export const isoTime = (value: string): string | null =>
  /^\d{4}-/.test(value) && !Number.isNaN(Date.parse(value)) ? new Date(value).toISOString() : null;

/** A rule, its location in the facts, and the expected value. */
type Statement = readonly [holds: boolean, where: string, expected: string];

/** Returns the location of the first contradiction in the facts and the expected value; null without one. */
export function contradictionIn(facts: ScoreFacts): string | null {
  const broken = statements(facts).find(([holds]) => !holds);
  return broken === undefined ? null : `${broken[1]}: expected ${broken[2]}`;
}

function statements({
  wallet,
  as_of,
  as_of_block,
  certificates,
  chain,
  seller_exams,
}: ScoreFacts): readonly Statement[] {
  const { from, to } = windowAt(as_of);
  const { window } = chain;
  return [
    [window.from === from && window.to === to, "chain.window", `the 90 days from ${from} to ${to}, given as_of`],
    [chain.first_block <= as_of_block, "chain.first_block", "no block after as_of_block"],
    ...certificates.map(
      ({ issued_at, valid_until }, index): Statement => [
        issued_at < valid_until,
        `certificates[${index}].valid_until`,
        "a time after issued_at",
      ],
    ),
    ...ofPayments(chain, as_of),
    ...chain.payees.flatMap((entry, index) => ofPayee(entry, `chain.payees[${index}]`, { wallet, as_of })),
    ...ofEscrow(chain.escrow),
    ...ofLookup(chain, as_of_block),
    ...chain.payees.flatMap((entry, index) => ofPayers(entry, `chain.payees[${index}]`, { wallet, chain })),
    ...seller_exams.flatMap(ofExam),
  ];
}

function ofPayments({ payments: { days, last }, window }: ChainFacts, asOf: string): readonly Statement[] {
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
  { payee, first_at, last_at }: PayeeFact,
  where: string,
  { wallet, as_of }: Pick<ScoreFacts, "wallet" | "as_of">,
): readonly Statement[] {
  return [
    [payee !== wallet, `${where}.payee`, "an address other than the wallet"],
    [first_at <= last_at && last_at <= as_of, `${where}.last_at`, "a time from first_at to as_of"],
  ];
}

function ofEscrow(facts: EscrowFacts): readonly Statement[] {
  const { buyers, release_days, last_release_tx, refunded_buyers, refund_days, last_refund_tx } = facts;
  return [
    ...ofOutcomes("release", [buyers, release_days, last_release_tx]),
    ...ofOutcomes("refund", [refunded_buyers, refund_days, last_refund_tx]),
  ];
}

/** Every buyer has a day. */
const ofOutcomes = (
  name: "release" | "refund",
  [buyers, days, last]: readonly [number, number, string | null],
): readonly Statement[] => [
  [buyers <= days && buyers > 0 === days > 0, `chain.escrow.${name}_days`, "at least one for each buyer"],
  [(last === null) === (days === 0), `chain.escrow.last_${name}_tx`, `null if and only if ${name}_days is 0`],
];

function ofLookup({ scope, lookup, payees, largest_funder }: ChainFacts, asOfBlock: number): readonly Statement[] {
  const isSelective = scope === "selective";
  const looked = payees.flatMap((payee) => payee.payers ?? []);
  const isBetween = lookup === null || lookup.block <= Math.min(lookup.as_of_block, asOfBlock);
  const differentPayers = new Set(looked.map(({ payer }) => payer)).size;
  return [
    [isSelective || lookup === null, "chain.lookup", "null, except in scope selective"],
    [lookup !== null || looked.length === 0, "chain.lookup", "an object, because payers were looked up"],
    [lookup !== null || !isSelective || largest_funder === null, "chain.largest_funder", "null without a look-up"],
    [isBetween, "chain.lookup.block", "a block not after chain.lookup.as_of_block or as_of_block"],
    [differentPayers <= LOOKUPS.payers, "chain.payees", `at most ${LOOKUPS.payers} different payers`],
  ];
}

function ofPayers(
  { payee, payers, funder_at_floor, other_funders, unfunded_payers }: PayeeFact,
  where: string,
  { wallet, chain }: { readonly wallet: Account; readonly chain: ChainFacts },
): readonly Statement[] {
  const isSelective = chain.scope === "selective";
  if (payers === null || !isSelective)
    return [[(payers === null) !== isSelective, `${where}.payers`, "null, except in scope selective"]];
  const others = otherFunders(payers, { wallet, payee, funders: [chain.largest_funder, funder_at_floor] });
  const unfunded = payers.filter(({ funder }) => funder === null).length;
  return [
    [other_funders === others, `${where}.other_funders`, `${others}, the number of distinct funders of payers`],
    [unfunded_payers >= unfunded, `${where}.unfunded_payers`, `at least ${unfunded}, as in payers`],
    ...payers.map(
      ({ payer, block }, index): Statement => [
        payer !== wallet && block >= chain.first_block && block <= (chain.lookup?.block ?? 0),
        `${where}.payers[${index}]`,
        "a payer other than the wallet, and a block that was looked up",
      ],
    ),
  ];
}

const ofExam = ({ result, level, issued_at, valid_until }: SellerExam, index: number): readonly Statement[] => {
  const where = `seller_exams[${index}]`;
  return [
    [(level === null) === (result === "fail"), `${where}.level`, "null with a FAIL, and only with one"],
    [issued_at < valid_until, `${where}.valid_until`, "a time after issued_at"],
  ];
};
