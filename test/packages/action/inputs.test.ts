import { expect, test } from "vitest";
import { readInputs } from "../../../packages/action/src/inputs.ts";
import { devAccount, privateKeyOf } from "../../../scripts/embedded/dev-accounts.ts";
import { metadata } from "../../support/action/run-action.ts";

const { address: wallet } = devAccount(1);
const key = privateKeyOf(devAccount(1));
const url = "http://localhost:3000/haiku";
const DEFAULTS = Object.entries(metadata.inputs).map(([name, one]) => [name, one.default ?? ""] as const);
const EXAM = { command: "examine", url, rpc: "http://localhost:8545" };

/** The step's inputs as GitHub's runner passes them, with the defaults of `action.yml`. */
const read = (inputs: Readonly<Record<string, string>>) => {
  const own = { "base-url": "https://trust.example", "payer-private-key": key };
  const given = { ...Object.fromEntries(DEFAULTS), ...own, ...inputs };
  const named = Object.entries(given).map(([name, value]) => [
    `INPUT_${name.toUpperCase().replaceAll("-", "_")}`,
    value,
  ]);
  return readInputs(Object.fromEntries(named));
};

test.each<[Readonly<Record<string, string>>, string]>([
  [{ command: "buy" }, 'command is "buy"; expected verify, certify, or examine.'],
  [{ command: "verify", wallet, "log-required": "true" }, "log-policy is missing"],
  [{ command: "verify", wallet: "vitalik.eth" }, 'wallet is "vitalik.eth"; expected 0x and 40 hex digits.'],
  [{ command: "verify", wallet, require: "can_fly" }, 'require names "can_fly"'],
  [{ command: "verify", "base-url": "http://trust.example" }, 'base-url is "http://trust.example"; expected an https'],
  [{ command: "certify", test: "scam" }, 'test is "scam"; expected basic or suite.'],
  [{ command: "certify", "max-price": "1e3" }, 'max-price is "1e3"'],
  [{ command: "certify", "payer-private-key": "0xsecret" }, "payer-private-key is not a key"],
  [{ ...EXAM, url: "" }, 'url is ""; expected the http or https URL'],
  [{ ...EXAM, url: "ftp://localhost/" }, 'url is "ftp://localhost/"; expected'],
  [{ ...EXAM, method: "head" }, 'method is "HEAD"; expected one that sells'],
  [{ ...EXAM, rpc: "" }, "rpc is not an http or https URL"],
  [
    { ...EXAM, other: "http://elsewhere/" },
    "other is at http://elsewhere; expected another URL of http://localhost:3000.",
  ],
  [{ ...EXAM, "max-price": "free" }, 'max-price is "free"; expected an amount'],
  [{ ...EXAM, level: "gold" }, 'level is "gold"; expected full or safe.'],
  [{ ...EXAM, report: "" }, 'report is ""; expected a file name.'],
  [{ ...EXAM, "payer-private-key": "0xsecret" }, "payer-private-key is not a key"],
])("The inputs %j are refused with the expected value, and a key is not repeated", (inputs, words) => {
  expect(() => read(inputs)).toThrow(words);
  expect(() => read(inputs)).not.toThrow("0xsecret");
});
