import { InputError, quote } from "../refusal.ts";
import { isObject, type Json } from "../strict-json.ts";
import { PRODUCT_MENU } from "../vocabulary.ts";
import { LOOKUPS, MAX_PAYEES } from "./bands.ts";
import { contradictionIn, isoTime } from "./consistency.ts";
import type {
  Account,
  CertificateFact,
  ChainFacts,
  EscrowFacts,
  Lookup,
  PayeeFact,
  PayerFact,
  PaymentFacts,
  ScoreFacts,
  SellerExam,
  TransactionHash,
} from "./facts.ts";

/** Reads one value; `path` is its location, for error messages. @throws InputError */
type Parse<T> = (value: Json | undefined, path: string) => T;

const refuse = (path: string, value: Json | undefined, expected: string): never => {
  throw new InputError(`${path} is ${quote(value)}; expected ${expected}`);
};

/** An object with exactly these members. */
export const object =
  <T>(members: { readonly [Name in keyof T]: Parse<T[Name]> }): Parse<T> =>
  (value, path) => {
    if (!isObject(value)) return refuse(path, value, "an object");
    const strange = Object.keys(value).find((name) => !Object.hasOwn(members, name));
    if (strange !== undefined) throw new InputError(`${path} has an unknown member ${quote(strange)}`);
    const read = ([name, parse]: [string, Parse<unknown>]) => [name, parse(value[name], `${path}.${name}`)];
    return Object.fromEntries(Object.entries<Parse<unknown>>(members).map(read));
  };

interface ListRules<T> {
  /** A key that is unique per item. */
  readonly identity: (item: T) => string;
  readonly max?: number;
}

/** A list of such items without duplicates. */
export const list =
  <T>(item: Parse<T>, { identity, max = Number.POSITIVE_INFINITY }: ListRules<T>): Parse<readonly T[]> =>
  (value, path) => {
    if (!Array.isArray(value)) return refuse(path, value, "a list");
    if (value.length > max) throw new InputError(`${path} has ${value.length} items; expected at most ${max}`);
    const items = value.map((one, index) => item(one, `${path}[${index}]`));
    const seen = new Set<string>();
    for (const [index, one] of items.entries()) {
      if (seen.has(identity(one))) throw new InputError(`${path}[${index}] repeats ${quote(identity(one))}`);
      seen.add(identity(one));
    }
    return items;
  };

/** The same type, or null. */
const nullable =
  <T>(parse: Parse<T>): Parse<T | null> =>
  (value, path) =>
    value === null ? null : parse(value, path);

/** One of these strings. */
const oneOf =
  <T extends string>(...known: readonly T[]): Parse<T> =>
  (value, path) =>
    known.find((name) => name === value) ?? refuse(path, value, `one of ${known.join(", ")}`);

/** A string that passes a test; `expected` describes it in the error message. */
export const text =
  <T extends string>(holds: (text: string) => boolean, expected: string): Parse<T> =>
  (value, path) =>
    typeof value === "string" && holds(value) ? (value as T) : refuse(path, value, expected);

/** A string that matches this pattern. */
const matching = <T extends string>(pattern: RegExp, expected: string) =>
  text<T>((value) => pattern.test(value), expected);

/** A whole number that JSON can carry exactly, and at least `least`. */
export const whole =
  (least: number): Parse<number> =>
  (value, path) =>
    typeof value === "number" && Number.isSafeInteger(value) && value >= least
      ? value
      : refuse(path, value, `a whole number of at least ${least}`);

const account = matching<Account>(/^0x[0-9a-f]{40}$/, "a lowercase address");
const transaction = matching<TransactionHash>(/^0x[0-9a-f]{64}$/, "a lowercase transaction hash");
const blockHash = matching<TransactionHash>(/^0x[0-9a-f]{64}$/, "a lowercase block hash");
const amount = matching(/^(0|[1-9]\d{0,77})$/, "atomic units of USDC as a decimal string");
const time = text((value) => isoTime(value) === value, "a UTC time like 2026-11-25T09:30:00.000Z");
const day = text((value) => isoTime(value) === `${value}T00:00:00.000Z`, "a UTC day like 2026-11-25");
const isNormalized = (value: string): boolean =>
  URL.canParse(value) && new URL(value).href === value && /^https?:/.test(value);
const pageUrl = text(isNormalized, "a normalized http or https URL");
const result = oneOf("pass", "fail");

const certificate = object<CertificateFact>({
  id: matching(/^[\w-]{1,64}$/, "letters, digits, hyphens, and underscores"),
  url: pageUrl,
  product: oneOf(...PRODUCT_MENU),
  result,
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
  other_funders: whole(0),
  unfunded_payers: whole(0),
  payers: nullable(
    list(object<PayerFact>({ payer: account, block: whole(0), funder: nullable(account) }), {
      identity: ({ payer }) => payer,
      max: LOOKUPS.payersPerPayee,
    }),
  ),
});

const escrow = object<EscrowFacts>({
  buyers: whole(0),
  release_days: whole(0),
  last_release_tx: nullable(transaction),
  refunded_buyers: whole(0),
  refund_days: whole(0),
  last_refund_tx: nullable(transaction),
});

const chain = object<ChainFacts>({
  network: matching(/^[-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}$/, "a CAIP-2 chain like eip155:8453"),
  scope: oneOf("full", "selective"),
  first_block: whole(0),
  window: object<ChainFacts["window"]>({ from: day, to: day }),
  payments,
  largest_funder: nullable(account),
  payees: list(payee, { identity: (entry) => entry.payee, max: MAX_PAYEES }),
  escrow,
  lookup: nullable(object<Lookup>({ block: whole(0), block_hash: blockHash, as_of_block: whole(0) })),
});

const exam = object<SellerExam>({
  id: matching(/^[0-9a-f]{32}$/, "32 hex digits"),
  url: pageUrl,
  origin: text((value) => isNormalized(`${value}/`) && new URL(value).origin === value, "an origin of http or https"),
  result,
  level: nullable(oneOf("full", "safe")),
  control: oneOf("file"),
  issued_at: time,
  valid_until: time,
});

const scoreFacts = object<ScoreFacts>({
  wallet: account,
  as_of: time,
  as_of_block: whole(0),
  certificates: list(certificate, { identity: (entry) => entry.id }),
  chain,
  seller_exams: list(exam, { identity: (entry) => entry.result }),
});

/**
 * Parses the facts of a score from untrusted JSON: exactly the members of `ScoreFacts`, without contradictions.
 * @throws InputError that names the location, such as `inputs.chain.payees[3].payers[0].funder`
 */
export function parseScoreFacts(value: Json | undefined, path = "inputs"): ScoreFacts {
  const facts = scoreFacts(value, path);
  const contradiction = contradictionIn(facts);
  if (contradiction !== null) throw new InputError(`${path}.${contradiction}`);
  return facts;
}
