import { type Examine, examineOf } from "./exam-inputs.ts";
import { Failure, type Input, keyOf, matching, parseUsd } from "./fields.ts";
import { CAPABILITIES, type Capability, SINGLE_PRODUCTS, type SingleProduct } from "./vocabulary.ts";

export interface Verify {
  readonly command: "verify";
  /** No trailing slash. */
  readonly baseUrl: string;
  readonly wallet: string;
  readonly require: readonly Capability[];
  /** How to check the certificates against the service's public log; null to skip this. */
  readonly log: LogInputs | null;
}

export interface LogInputs {
  /** The text of a C2SP tlog-policy: the log and witnesses to trust. */
  readonly policy: string;
  /** Files with proofs. */
  readonly proofs: readonly string[];
  /** Whether the step fails without a proof, or if the log was not read to its end. */
  readonly isRequired: boolean;
  /** The file that stores the log entries that were read; null to read the log from its beginning each time. */
  readonly state: string | null;
  /** The maximum number of new entries to read; 0 to compare nothing. */
  readonly mostEntries: number;
}

export interface Certify {
  readonly command: "certify";
  readonly baseUrl: string;
  readonly test: SingleProduct;
  /** Atomic USDC. */
  readonly maxPrice: bigint;
  readonly renewWithinDays: number;
  readonly privateKey: `0x${string}`;
}

/** Reads the inputs of the step, from `INPUT_*`. Throws a Failure that names the input and the expected value. */
export function readInputs(env: Readonly<Record<string, string | undefined>>): Verify | Certify | Examine {
  const input: Input = (name) => (env[`INPUT_${name.toUpperCase().replaceAll("-", "_")}`] ?? "").trim();
  const command = input("command");
  if (command === "examine") return examineOf(input);
  const baseUrl = originOf(input("base-url"));
  if (command === "verify") {
    const wallet = matching("wallet", input("wallet"), {
      form: /^0x[0-9a-fA-F]{40}$/,
      expected: "0x and 40 hex digits",
    });
    return { command, baseUrl, wallet, require: capabilitiesOf(input("require")), log: logOf(input) };
  }
  if (command !== "certify") throw new Failure(`command is "${command}"; expected verify, certify, or examine.`);
  const named = input("test");
  const test = SINGLE_PRODUCTS.find((one) => one === named);
  if (test === undefined) throw new Failure(`test is "${named}"; expected ${SINGLE_PRODUCTS.join(" or ")}.`);
  const days = matching("renew-within-days", input("renew-within-days"), {
    form: /^\d{1,2}$/,
    expected: "whole days, at most 99",
  });
  return {
    command,
    baseUrl,
    test,
    maxPrice: parseUsd(input("max-price")),
    renewWithinDays: Number(days),
    privateKey: keyOf(input("payer-private-key")),
  };
}

function originOf(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  const isSafe = url?.protocol === "https:" || (url?.protocol === "http:" && url.hostname === "localhost");
  if (url === null || !isSafe || url.pathname !== "/" || url.search !== "" || url.username !== "")
    throw new Failure(`base-url is "${text}"; expected an https origin, such as https://trust.example.`);
  return url.origin;
}

function logOf(input: Input): LogInputs | null {
  const policy = input("log-policy");
  const proofs = input("log-proofs")
    .split(/[\n,]/)
    .flatMap((file) => file.trim() || []);
  const required = matching("log-required", input("log-required") || "false", {
    form: /^(true|false)$/,
    expected: "true or false",
  });
  const state = input("log-state") || null;
  const most = matching("log-entries", input("log-entries") || "10000", {
    form: /^\d{1,8}$/,
    expected: "the maximum number of entries to read",
  });
  if (policy !== "") return { policy, proofs, isRequired: required === "true", state, mostEntries: Number(most) };
  if (proofs.length > 0 || required === "true" || state !== null)
    throw new Failure(
      "log-policy is missing. It names the log and witnesses to trust; without it, a proof is useless.",
    );
  return null;
}

function capabilitiesOf(text: string): readonly Capability[] {
  const names = text.split(",").flatMap((name) => name.trim() || []);
  const unknown = names.find((name) => !(CAPABILITIES as readonly string[]).includes(name));
  if (unknown !== undefined) throw new Failure(`require names "${unknown}"; expected only ${CAPABILITIES.join(", ")}.`);
  return names as Capability[];
}
