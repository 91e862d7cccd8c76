import { InputError } from "../../refusal.ts";
import { isObject, type Json } from "../../strict-json.ts";
import { list, matching, nullable, object, oneOf, whole } from "../parsers.ts";
import type { Account, Product, TransactionHash } from "../v1/facts.ts";
import type { Statement } from "../v1/parse-facts.ts";
import { CAPABILITIES } from "../v1/record.ts";
import { parserFor } from "../v2/parse-facts.ts";
import { LOOKUPS } from "./bands.ts";
import type { ChainFacts, Lookup, PayeeFact, PayerFact, ScoreFacts } from "./facts.ts";
import { otherFunders } from "./funders.ts";

const parseV2 = parserFor(Object.values(CAPABILITIES) satisfies readonly Product[]);
const account = matching<Account>(/^0x[0-9a-f]{40}$/, "a lowercase address");
const hash = matching<TransactionHash>(/^0x[0-9a-f]{64}$/, "a lowercase block hash");
const scope = oneOf("full", "authorised", "selective");
const lookup = nullable(object<Lookup>({ block: whole(0), block_hash: hash, as_of_block: whole(0) }));
const payers = nullable(
  list(object<PayerFact>({ payer: account, block: whole(0), funder: nullable(account) }), {
    identity: ({ payer }) => payer,
    max: LOOKUPS.payersPerPayee,
  }),
);

/**
 * The facts of a score from untrusted JSON: exactly the members of `ScoreFacts`, none missing, none added, and no two
 * that contradict each other.
 * @throws InputError that names the place, like `inputs.chain.payees[3].payers[0].funder`
 */
export function parseScoreFacts(value: Json | undefined, path = "inputs"): ScoreFacts {
  const chain = isObject(value) ? value.chain : undefined;
  if (!isObject(value) || !isObject(chain) || !Array.isArray(chain.payees)) {
    parseV2(value, path);
    throw new InputError(`${path}.chain is no facts of this version`);
  }
  const place = `${path}.chain`;
  const added = { scope: scope(chain.scope, `${place}.scope`), lookup: lookup(chain.lookup, `${place}.lookup`) };
  const known = chain.payees.map((one: Json, index) => {
    if (!isObject(one)) return { rest: one, payers: null };
    const { payers: _, ...rest } = one;
    return { rest, payers: payers(one.payers, `${place}.payees[${index}].payers`) };
  });
  const { lookup: _, ...others } = chain;
  const asV2 = {
    ...others,
    scope: added.scope === "authorised" ? "authorised" : "full",
    payees: known.map(({ rest }) => rest),
  };
  const facts = parseV2({ ...value, chain: asV2 } as Json, path);
  const payees = facts.chain.payees.map((payee, index) => ({ ...payee, payers: known[index]?.payers ?? null }));
  const complete: ScoreFacts = { ...facts, chain: { ...facts.chain, ...added, payees } };
  for (const [holds, where, expected] of statements(complete))
    if (!holds) throw new InputError(`${path}.${where}: expected ${expected}`);
  return complete;
}

/** The consistency rules between the members that are new in this version. */
function statements({ wallet, as_of_block, chain }: ScoreFacts): readonly Statement[] {
  const { lookup, payees } = chain;
  const isSelective = chain.scope === "selective";
  const looked = payees.flatMap((payee) => payee.payers ?? []);
  const isBetween = lookup === null || lookup.block <= Math.min(lookup.as_of_block, as_of_block);
  return [
    [isSelective || lookup === null, "chain.lookup", "null, except in scope selective"],
    [lookup !== null || looked.length === 0, "chain.lookup", "what the payers come from"],
    [
      lookup !== null || !isSelective || chain.largest_funder === null,
      "chain.largest_funder",
      "null without a look-up",
    ],
    [isBetween, "chain.lookup.block", "a block before those that the index was asked after"],
    [
      new Set(looked.map(({ payer }) => payer)).size <= LOOKUPS.payers,
      "chain.payees",
      `at most ${LOOKUPS.payers} different payers`,
    ],
    ...payees.flatMap((payee, index) => ofPayee(payee, `chain.payees[${index}]`, { wallet, chain })),
  ];
}

function ofPayee(
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
    [other_funders === others, `${where}.other_funders`, `${others}, the funders of payers`],
    [(unfunded_payers ?? 0) >= unfunded, `${where}.unfunded_payers`, `at least ${unfunded}, as in payers`],
    ...payers.map(
      ({ payer, block }, index): Statement => [
        payer !== wallet && block >= chain.first_block && block <= (chain.lookup?.block ?? 0),
        `${where}.payers[${index}]`,
        "a payer other than the wallet, and a block that was looked up",
      ],
    ),
  ];
}
