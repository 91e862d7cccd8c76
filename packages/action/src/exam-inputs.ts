import { Failure, type Input, keyOf, matching, parseUsd } from "./fields.ts";

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
export function examineOf(input: Input): Examine {
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
