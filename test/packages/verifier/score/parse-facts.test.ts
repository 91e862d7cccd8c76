import { describe, expect, test } from "vitest";
import { InputError } from "../../../../packages/verifier/src/refusal.ts";
import type { ChainFacts } from "../../../../packages/verifier/src/score/facts.ts";
import { parseScoreFacts } from "../../../../packages/verifier/src/score/parse-facts.ts";
import { isObject, type Json, type JsonObject } from "../../../../packages/verifier/src/strict-json.ts";
import { AS_OF, certificate, daysAgo, facts, outcomes, payee, payments, transaction, WALLET } from "./facts.ts";

const full = facts(
  {
    payments: payments([daysAgo(1), 2, 2_000], [daysAgo(89), 1, 1_000]),
    payees: [payee(1), payee(2)],
    escrow: outcomes([2, 2], [1, 1]),
  },
  [certificate("scam"), certificate("scam", { age: 40, reversed: true })],
);
const asJson = (given: unknown): Json => JSON.parse(JSON.stringify(given));
const parse = (given: unknown) => parseScoreFacts(asJson(given));

type Path = readonly (string | number)[];
const written = (path: Path) =>
  ["inputs", ...path]
    .map((part) => (typeof part === "number" ? `[${part}]` : `.${part}`))
    .join("")
    .slice(1);

/** Every path in a value, without the empty one. */
const placesIn = (value: Json, path: Path = []): readonly Path[] => {
  const inside = Array.isArray(value) ? [...value.entries()] : isObject(value) ? Object.entries(value) : [];
  return inside.flatMap(([name, part]) => [[...path, name], ...placesIn(part, [...path, name])]);
};
const at = (value: Json, path: Path): Json =>
  path.reduce<Json>((part, name) => (part as Record<string | number, Json>)[name] ?? null, value);

/** The facts with another value at one path. `undefined` removes the member. */
function changed(path: Path, value: Json | undefined, given: unknown = full): Json {
  const copy = asJson(given);
  const [name, holder] = [path.at(-1) ?? "", at(copy, path.slice(0, -1)) as Record<string | number, Json>];
  if (value === undefined) delete holder[name];
  else holder[name] = value;
  return copy;
}

const refusal = (given: Json): string => {
  try {
    parseScoreFacts(given);
  } catch (error) {
    expect(error).toBeInstanceOf(InputError);
    return (error as InputError).message;
  }
  return "accepted";
};

const places = placesIn(asJson(full));
const members = places.filter((path) => typeof path.at(-1) === "string");
const objects = [[], ...places.filter((path) => isObject(at(asJson(full), path)))];
const leaves = places.filter((path) => typeof at(asJson(full), path) !== "object");

test("The parser returns what was written, in either scope", () => {
  expect(parse(full)).toEqual(full);
  expect(places.length).toBeGreaterThan(60);
});

test.each(members.map((path) => [written(path), path] as const))(
  "Facts without %s are refused by that name",
  (name, path) => expect(refusal(changed(path, undefined))).toMatch(`${name} is missing; expected`),
);

test.each(objects.map((path) => [written(path), path] as const))("An unknown member of %s is refused", (name, path) => {
  expect(refusal(changed([...path, "more"], 1))).toBe(`${name} has an unknown member "more"`);
  const proto = JSON.parse(JSON.stringify(changed([...path, "more"], 1)).replace('"more"', '"__proto__"'));
  expect(refusal(proto)).toBe(`${name} has an unknown member "__proto__"`);
});

test.each(places.map((path) => [written(path), path] as const))(
  "A %s of another type is refused by that name",
  (name, path) => {
    const is = at(asJson(full), path);
    const others: readonly Json[] = [
      true,
      ...(isObject(is) || is === null ? ["{}"] : [{}]),
      ...(typeof is === "number" ? ["1"] : [1]),
    ];
    for (const other of others) expect(refusal(changed(path, other))).toMatch(`${name} is `);
  },
);

test.each(leaves.map((path) => [written(path), path] as const))("The member %s has only one form", (name, path) => {
  const is = at(asJson(full), path);
  const others: readonly Json[] =
    typeof is === "number" ? [-1, 1.5, 2 ** 53] : ["", ` ${is}`, `${is}\n`, `${String(is).toUpperCase()}!`];
  for (const other of others) expect(refusal(changed(path, other))).toMatch(`${name} is `);
});

test.each([
  ["a wallet in mixed case", ["wallet"], "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"],
  ["a time without milliseconds", ["as_of"], "2026-11-25T09:30:00Z"],
  ["a time in another zone", ["as_of"], "2026-11-25T09:30:00.000+01:00"],
  ["a time with a six-digit year", ["as_of"], "+010000-01-01T00:00:00.000Z"],
  ["a day that does not exist", ["chain", "payments", "days", 0, "day"], "2026-11-31"],
  ["an amount with a leading zero", ["chain", "payees", 0, "value"], "050000"],
  ["an amount in dollars", ["chain", "payees", 0, "value"], "0.05"],
  ["a negative amount", ["chain", "payees", 0, "returned"], "-1"],
  ["a page that is not a web address", ["certificates", 0, "url"], "javascript:alert(1)"],
  ["an unknown product", ["certificates", 0, "product"], "toString"],
  ["an unknown result", ["certificates", 0, "result"], "PASS"],
  ["an unknown scope", ["chain", "scope"], "watched"],
  ["a chain's name", ["chain", "network"], "base"],
  ["a day without a payment", ["chain", "payments", "days", 0, "count"], 0],
  ["no count of funders", ["chain", "payees", 1, "other_funders"], null],
] as const)("Facts with %s are refused", (_, path, value) =>
  expect(refusal(changed(path, value))).toMatch(`${written(path)} is ${JSON.stringify(value)}; expected`),
);

test("An index without a response is not a history", () =>
  expect(refusal(changed(["chain"], null))).toBe("inputs.chain is null; expected an object"));

describe("contradicting facts", () => {
  const withChain = (chain: Partial<ChainFacts>) => ({ ...full, chain: { ...full.chain, ...chain } });
  const late = "2026-11-25T09:30:01.000Z";
  test.each<[string, unknown, string]>([
    ["a window with other days", withChain({ window: { from: "2026-08-27", to: "2026-11-25" } }), "chain.window"],
    ["a window with another last day", withChain({ window: { from: "2026-08-28", to: "2026-11-24" } }), "chain.window"],
    ["an index that begins after its block", withChain({ first_block: 40_000_001 }), "chain.first_block"],
    [
      "a certificate that ends when it begins",
      changed(["certificates", 0, "valid_until"], daysAgo(1)),
      "certificates[0].valid_until",
    ],
    [
      "a day before the window",
      withChain({ payments: payments([daysAgo(90), 1, 1_000]) }),
      "chain.payments.days[0].day",
    ],
    [
      "a day after the window",
      withChain({ payments: payments([daysAgo(-1), 1, 1_000]) }),
      "chain.payments.days[0].day",
    ],
    [
      "payments too small to qualify",
      withChain({ payments: payments([daysAgo(1), 2, 1_999]) }),
      "chain.payments.days[0].value",
    ],
    [
      "a last payment without days",
      withChain({ payments: { days: [], last: { at: AS_OF, tx: transaction(1) } } }),
      "chain.payments.last",
    ],
    ["days without a last payment", changed(["chain", "payments", "last"], null), "chain.payments.last"],
    ["a last payment on another day", changed(["chain", "payments", "last", "at"], daysAgo(2)), "chain.payments.last"],
    ["a last payment after as_of", withChain({ payments: payments([late, 1, 1_000]) }), "chain.payments.last"],
    ["the wallet as its own payee", changed(["chain", "payees", 0, "payee"], WALLET), "chain.payees[0].payee"],
    [
      "a payee last paid before it was first",
      changed(["chain", "payees", 0, "last_at"], daysAgo(3)),
      "chain.payees[0].last_at",
    ],
    ["a payee paid after as_of", changed(["chain", "payees", 0, "last_at"], late), "chain.payees[0].last_at"],
  ])("Facts with %s are refused", (_, given, where) =>
    expect(refusal(asJson(given))).toMatch(`inputs.${where}: expected `),
  );
});

describe("scope selective", () => {
  const lookup = { block: 39_000_000, block_hash: transaction(9), as_of_block: 39_500_000 };
  const payers = [1, 2, 3].map((n) => ({ payer: payee(40 + n).payee, block: 38_000_000, funder: payee(50 + n).payee }));
  const selective = facts({ scope: "selective", lookup, payees: [payee(1, { payers })] });
  const withPayer = (payer: object) =>
    facts({
      ...selective.chain,
      payees: [payee(1, { payers: [{ ...payers[0], ...payer }, ...payers.slice(1)] as never })],
    });

  test("The parser returns what was written", () => expect(parse(selective)).toEqual(selective));

  test.each<[string, unknown, string]>([
    ["payers without a look-up", changed(["chain", "lookup"], null, selective), "chain.lookup"],
    ["a look-up in scope full", changed(["chain", "lookup"], lookup as never), "chain.lookup"],
    ["a look-up after the index", changed(["chain", "lookup", "block"], 39_500_001, selective), "chain.lookup.block"],
    ["no payers", changed(["chain", "payees", 0, "payers"], null, selective), "chain.payees[0].payers"],
    ["payers in scope full", changed(["chain", "payees", 0, "payers"], []), "chain.payees[0].payers"],
    ["fewer funders", changed(["chain", "payees", 0, "other_funders"], 2, selective), "chain.payees[0].other_funders"],
    ["a payer after the look-up", withPayer({ block: 39_000_001 }), "chain.payees[0].payers[0]"],
    ["the wallet as a payer", withPayer({ payer: WALLET }), "chain.payees[0].payers[0]"],
    ["a payer without a funder", withPayer({ funder: null }), "chain.payees[0].other_funders"],
  ])("Facts with %s are refused", (_, given, where) =>
    expect(refusal(asJson(given))).toMatch(`inputs.${where}: expected `),
  );
});

describe("lists in the facts", () => {
  test.each<[string, Path, string]>([
    ["a certificate", ["certificates"], "id"],
    ["a payee", ["chain", "payees"], "payee"],
    ["a day", ["chain", "payments", "days"], "day"],
  ])("A list with %s twice is refused", (_, path, name) => {
    const item = at(asJson(full), [...path, 0]) as JsonObject;
    expect(refusal(changed(path, [item, item]))).toBe(`${written(path)}[1] repeats ${JSON.stringify(item[name])}`);
  });

  test("A list of 65 payees is refused, and one of 64 is accepted", () => {
    const some = (count: number) => facts({ payees: Array.from({ length: count }, (_, n) => payee(n)) });
    expect(refusal(asJson(some(64)))).toBe("accepted");
    expect(refusal(asJson(some(65)))).toBe("inputs.chain.payees has 65 items; expected at most 64");
  });
});
