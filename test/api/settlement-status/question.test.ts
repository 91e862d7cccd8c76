import { expect, test } from "vitest";
import { Problem } from "../../../api/platform/http/errors.ts";
import { questionOf } from "../../../api/settlement-status/question.ts";

const GOOD = { network: "base", from: `0x${"1".repeat(40)}`, nonce: `0x${"2".repeat(64)}` };
const queryOf = (members: Readonly<Record<string, string | undefined>>) =>
  new URLSearchParams(Object.entries(members).filter((entry): entry is [string, string] => entry[1] !== undefined));

function refusalOf(query: URLSearchParams): Problem {
  try {
    questionOf(query);
  } catch (error) {
    if (error instanceof Problem) return error;
    throw error;
  }
  throw new Error("it was taken");
}

test.each([
  ["no network", { network: undefined }, "network is missing"],
  ["an unknown network", { network: "solana" }, "network is"],
  ["a network that is Object's", { network: "constructor" }, "network is"],
  ["a payer that is none", { from: "0x12" }, "from is"],
  ["a nonce that is too short", { nonce: "0x01" }, "nonce is"],
  ["a huge nonce", { nonce: `0x${"1".repeat(4_000)}` }, "nonce is"],
  ["a validBefore before 1970", { valid_before: "-1" }, "valid_before is"],
  ["a validBefore beyond uint256", { valid_before: String(2n ** 256n) }, "valid_before is"],
  ["a transaction that is none", { transaction: "latest" }, "transaction is"],
])("%s is refused before anything is asked, with what was expected", (_, wrong, detail) => {
  const refused = refusalOf(queryOf({ ...GOOD, ...wrong }));
  expect(refused.code).toBe("malformed_request");
  expect(refused.details.detail).toContain(detail);
  expect(refused.details.detail.length).toBeLessThan(300);
});

test.each(["0", "9007199254740993", "18446744073709551616", String(2n ** 256n - 1n)])(
  "a validBefore of %s is taken as it is",
  (text) => {
    expect(questionOf(queryOf({ ...GOOD, valid_before: text })).validBefore).toBe(BigInt(text));
  },
);
