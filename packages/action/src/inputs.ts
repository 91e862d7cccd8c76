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

/** The levels that an exam may require, best first. */
const LEVELS = ["full", "safe"] as const;
export type LeastLevel = (typeof LEVELS)[number];

export interface Examine {
  readonly command: "examine";
  readonly resource: {
    readonly url: string;
    readonly method: string;
    readonly body: string | null;
    readonly contentType: string;
  };
  /** Another paid URL of the same seller; null if none is named. */
  readonly other: string | null;
  /** The chain that payments settle on. The URL may contain a provider's key, so no message repeats it. */
  readonly rpcUrl: string;
  /** Atomic USDC, per payment. */
  readonly maxPrice: bigint;
  readonly leastLevel: LeastLevel;
  /** The file for the whole report. */
  readonly reportPath: string;
  readonly privateKey: `0x${string}`;
}

/** Parses the inputs of an exam. Throws a Failure that names the input and the expected value. */
function examineOf(input: Input): Examine {
  const body = input("body") === "" ? null : input("body");
  const method = matching("method", input("method").toUpperCase() || (body === null ? "GET" : "POST"), {
    form: /^(?!HEAD$)[A-Z]+$/,
    expected: "one that sells a result, such as GET or POST",
  });
  const url = webUrl(input("url"), (text) => `url is "${text}"; expected the http or https URL of a paid endpoint.`);
  return {
    command: "examine",
    resource: { url, method, body, contentType: input("content-type") || "application/json" },
    other: input("other") === "" ? null : otherOf(input("other"), url),
    rpcUrl: webUrl(input("rpc"), () => "rpc is not an http or https URL; expected the JSON-RPC URL of a local chain."),
    maxPrice: parseUsd(input("max-price")),
    leastLevel: levelOf(input("level")),
    reportPath: matching("report", input("report"), { form: /^[^\r\n]+$/, expected: "a file name" }),
    privateKey: keyOf(input("payer-private-key")),
  };
}

function webUrl(text: string, refusal: (text: string) => string): string {
  if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)) return text;
  throw new Failure(refusal(text));
}

function otherOf(text: string, url: string): string {
  const other = URL.canParse(text, url) ? new URL(text, url) : null;
  if (other === null)
    throw new Failure(`other is "${text}"; expected another paid URL of the same seller, or its path.`);
  if (other.origin === new URL(url).origin) return other.href;
  throw new Failure(`other is at ${other.origin}; expected another URL of ${new URL(url).origin}.`);
}

function levelOf(text: string): LeastLevel {
  const level = LEVELS.find((name) => name === text);
  if (level === undefined) throw new Failure(`level is "${text}"; expected ${LEVELS.join(" or ")}.`);
  return level;
}
