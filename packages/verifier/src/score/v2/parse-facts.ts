import type { Json } from "../../strict-json.ts";
import { nullable, object, whole } from "../parsers.ts";
import type { Product } from "../v1/facts.ts";
import { parserOf, type Statement, transaction } from "../v1/parse-facts.ts";
import type { EscrowFacts, ScoreFacts } from "./facts.ts";

const escrow = object<EscrowFacts>({
  buyers: whole(0),
  release_days: whole(0),
  last_release_tx: nullable(transaction),
  refunded_buyers: whole(0),
  refund_days: whole(0),
  last_refund_tx: nullable(transaction),
});

/**
 * The facts of a score from untrusted JSON: exactly the members of `ScoreFacts`, none missing, none added, and no two
 * that contradict each other.
 * @throws InputError that names the place, like `inputs.chain.payees[3].value`
 */
export const parseScoreFacts: (value: Json | undefined, path?: string) => ScoreFacts = parserOf(escrow, ofEscrow);

/** The same for a version that knows other tests. */
export const parserFor = (tests: readonly Product[]): typeof parseScoreFacts => parserOf(escrow, ofEscrow, tests);

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
