import { decodePaymentRequiredHeader } from "@x402/core/http";
import { PaymentRequiredV1Schema, PaymentRequiredV2Schema } from "@x402/core/schemas";
import { type Address, formatUnits, getAddress, isAddress } from "viem";
import { NETWORKS } from "../../../verifier/src/networks.ts";
import type { Answer } from "./exchange.ts";
import { AUTH_CAPTURE, type HoldTerms, holdTermsOf } from "./hold.ts";

/** Version 1 names of the networks that an exam can pay on. */
const NAMES_V1: ReadonlyMap<unknown, string> = new Map(Object.entries(NETWORKS).map(([id, { key }]) => [key, id]));

/** One way to pay that an exam supports: EIP-3009 under the scheme `exact`, or `auth-capture`. */
export interface Terms {
  readonly version: 1 | 2;
  /** CAIP-2. */
  readonly network: `eip155:${number}`;
  readonly asset: Address;
  /** In atomic units. */
  readonly amount: bigint;
  readonly payTo: Address;
  readonly maxTimeoutSeconds: number;
  /** The terms of the hold under `auth-capture`; null under `exact`. */
  readonly hold: HoldTerms | null;
  /** From the asset's EIP-712 domain. */
  readonly domain: { readonly name: string; readonly version: string };
  /** The entry of `accepts`, unchanged. */
  readonly accepted: Readonly<Record<string, unknown>>;
  readonly resource: unknown;
  /** The URL of the entry's resource. */
  readonly url: string;
  readonly extensions: unknown;
}

/** The quote of a 402 in one version of x402. */
export interface Quote {
  readonly version: 1 | 2;
  /** Null if the quote is well formed. */
  readonly problem: string | null;
  readonly accepts: readonly Readonly<Record<string, unknown>>[];
  readonly resource: unknown;
  readonly extensions: unknown;
}

/** Reads the quotes of a 402: version 2 from its header, version 1 from its body. Empty without any. */
export function readQuotes({ headers, body }: Answer): readonly Quote[] {
  const header = headers["payment-required"];
  const json = parsed(() => JSON.parse(new TextDecoder().decode(body)) as unknown);
  const { x402Version, accepts } = record(json);
  // With version 2, an empty offer in the body only tells a client of version 1 why.
  const isV1 = x402Version === 1 && (header === undefined || !Array.isArray(accepts) || accepts.length > 0);
  return [...(header === undefined ? [] : [quoteV2(header)]), ...(isV1 ? [quoteV1(json)] : [])];
}

function quoteV2(header: string): Quote {
  const decoded = parsed(() => decodePaymentRequiredHeader(header) as unknown);
  if (isDeep(decoded)) return broken(2, TOO_DEEP);
  const { success, data, error } = PaymentRequiredV2Schema.safeParse(decoded);
  if (!success) return broken(2, decoded === undefined ? "the header is not JSON in base64" : pathOf(error.issues));
  return { version: 2, problem: null, accepts: data.accepts, resource: data.resource, extensions: data.extensions };
}

function quoteV1(json: unknown): Quote {
  if (isDeep(json)) return broken(1, TOO_DEEP);
  const { success, data, error } = PaymentRequiredV1Schema.safeParse(json);
  if (!success) return broken(1, pathOf(error.issues));
  const accepts = data.accepts.map((entry) => ({ ...entry }));
  return { version: 1, problem: null, accepts, resource: accepts[0]?.resource, extensions: undefined };
}

const MOST_DEEP = 32;
const TOO_DEEP = `it is nested deeper than ${MOST_DEEP} levels`;

/** Unbounded nesting would exhaust a recursive reader, so this goes level by level. */
function isDeep(value: unknown): boolean {
  let level = [value];
  for (let depth = 0; depth <= MOST_DEEP; depth++) {
    level = level.flatMap((one) => (typeof one === "object" && one !== null ? Object.values(one) : []));
    if (level.length === 0) return false;
  }
  return true;
}

const broken = (version: 1 | 2, problem: string): Quote => ({
  version,
  problem,
  accepts: [],
  resource: null,
  extensions: null,
});

const pathOf = (issues: readonly { readonly path: readonly PropertyKey[]; readonly message: string }[]): string =>
  issues.map(({ path, message }) => `${path.map(String).join(".") || "the quote"}: ${message}`).join("; ");

/** The limits of an exam's payments. */
export interface Payable {
  /** The CAIP-2 identifier of the chain that the exam pays on. */
  readonly network: string;
  /** Undefined if any asset will do, as on a local chain. */
  readonly asset?: Address | undefined;
  /** In atomic units, per payment. */
  readonly ceiling: bigint;
  /** The one recipient to pay; undefined if any will do. */
  readonly payTo?: Address | undefined;
}

/** Returns the first entry that the exam can pay, or a clause with the reason why there is none. */
export function choose(quotes: readonly Quote[], payable: Payable, url: string): Terms | string {
  const reasons: string[] = [];
  for (const quote of quotes)
    for (const entry of quote.accepts) {
      const terms = termsOf(quote, entry, url);
      const refusal = typeof terms === "string" ? terms : refusalOf(terms, payable);
      if (refusal === null) return terms as Terms;
      reasons.push(refusal);
    }
  return reasons.length === 0 ? "it quotes nothing that can be paid" : [...new Set(reasons)].join("; ");
}

function refusalOf({ network, asset, amount, payTo }: Terms, payable: Payable): string | null {
  if (network !== payable.network) return `an entry is for ${network}, but this exam pays on ${payable.network}`;
  if (payable.asset !== undefined && asset !== getAddress(payable.asset))
    return `an entry requires ${asset}, but this exam pays in ${payable.asset}`;
  if (payable.payTo !== undefined && payTo !== getAddress(payable.payTo))
    return `an entry is paid to ${payTo}, but this exam pays ${payable.payTo}`;
  if (amount > payable.ceiling) return `an entry costs ${usdc(amount)}, but the ceiling is ${usdc(payable.ceiling)}`;
  return null;
}

function termsOf(quote: Quote, entry: Readonly<Record<string, unknown>>, url: string): Terms | string {
  const { scheme, network, asset, payTo, maxTimeoutSeconds, extra } = entry;
  const amount = quote.version === 1 ? entry.maxAmountRequired : entry.amount;
  const { name, version, assetTransferMethod = "eip3009" } = record(extra);
  if (scheme !== "exact" && (scheme !== AUTH_CAPTURE || quote.version === 1))
    return `an entry has the scheme ${String(scheme)}, but this exam pays under exact and, in version 2, ${AUTH_CAPTURE}`;
  if (assetTransferMethod !== "eip3009")
    return `an entry requires ${String(assetTransferMethod)}, but this exam signs EIP-3009`;
  const chain = quote.version === 1 ? (NAMES_V1.get(network) ?? String(network)) : String(network);
  if (!/^eip155:\d+$/.test(chain)) return `an entry is for ${chain}, which is not an EVM chain`;
  if (!isAddress(String(asset), { strict: false })) return "an entry's asset is not an address";
  if (!isAddress(String(payTo), { strict: false })) return "an entry's payTo is not an address";
  if (typeof amount !== "string" || !/^[1-9]\d{0,30}$/.test(amount))
    return `an entry's amount is ${JSON.stringify(amount)}; expected atomic units as a string`;
  if (typeof name !== "string" || typeof version !== "string")
    return "an entry has no extra.name and extra.version, the domain to sign for";
  const hold = scheme === AUTH_CAPTURE ? holdTermsOf(record(extra)) : null;
  if (typeof hold === "string") return hold;
  if (hold !== null && BigInt(amount) >= 2n ** 120n) return "an entry's amount does not fit into the escrow's 120 bits";
  return {
    version: quote.version,
    network: chain as `eip155:${number}`,
    asset: getAddress(String(asset)),
    amount: BigInt(amount),
    payTo: getAddress(String(payTo)),
    maxTimeoutSeconds: Number(maxTimeoutSeconds),
    hold,
    domain: { name, version },
    accepted: entry,
    resource: quote.resource,
    url: resourceUrl(quote.version === 1 ? entry.resource : quote.resource) ?? url,
    extensions: quote.extensions,
  };
}

/** Returns the URL that a resource names, in either version; null without one. */
export function resourceUrl(resource: unknown): string | null {
  const url = typeof resource === "string" ? resource : record(resource).url;
  return typeof url === "string" ? url : null;
}

export const record = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};

function parsed<T>(parse: () => T): T | undefined {
  try {
    return parse();
  } catch {
    return undefined;
  }
}

/** Formats atomic units for people, such as 0.003 USDC. The exam pays in tokens of six decimals. */
export const usdc = (atomic: bigint): string => `${formatUnits(atomic, 6)} USDC`;
