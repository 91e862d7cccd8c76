import { quote } from "./refusal.ts";
import { isObject, type Json, type JsonObject, objectIn } from "./strict-json.ts";

/** The claims of a signed document, and their subject. */
export interface Claims {
  readonly kind: "wallet" | "seller" | "certificate" | "verdict" | "evaluation" | "settlement" | "log" | "unknown";
  /** The one wallet that the document is about, in lowercase; null if it is about several or none. */
  readonly wallet: string | null;
  /** The subject in words, such as `wallet 0x…`. */
  readonly about: string;
  /** The result in a few words, such as `not verified: FAIL in scam`. */
  readonly summary: string;
  /** Further claims, one per line. */
  readonly details: readonly string[];
}

/**
 * Reads the claims of a document of the service. This does not check the signature: pass the `document` of a report
 * whose signature is valid.
 */
export function claimsOf(document: JsonObject): Claims {
  const { type } = document;
  const types = Array.isArray(type) ? type : [type];
  const read = READERS.find(([name]) => types.includes(name))?.[1];
  return (
    read?.(document) ?? { ...ABOUT_NONE, kind: "unknown", about: `a document of type ${quote(type)}`, summary: "" }
  );
}

/**
 * Returns whether a wallet or a seller is verified, in words, from its credential's subject or its verification record:
 * `verified`, `verified on the test network …`, or the reason why not.
 */
export function standingOf(subject: JsonObject): string {
  const test = subject.test_network;
  if (subject.verified === true)
    return test === undefined ? "verified" : `verified on the test network ${plain(test)} only`;
  const listed = subject.conformance ?? subject.certs;
  const fails = (Array.isArray(listed) ? (listed as readonly Json[]) : [])
    .filter(isObject)
    .filter(({ result, fresh }) => result === "fail" && fresh === true)
    .map(({ product }) => plain(product));
  if (fails.length > 0) return `not verified: FAIL in ${[...new Set(fails)].join(", ")}`;
  return `not verified: ${subject.tested === false ? "never tested" : "no current PASS"}`;
}

const ABOUT_NONE = { wallet: null, details: [] } as const;

/** Readers by document type. */
const READERS: readonly (readonly [string, (document: JsonObject) => Claims])[] = [
  ["AgentPaymentCredential", ofWallet],
  ["SellerCredential", ofSeller],
  ["AgentPaymentCertificate", (document) => ofCertificate(objectIn(document.credentialSubject))],
  ["ArbiterVerdict", ofVerdict],
  ["EscrowEvaluation", ofEvaluation],
  ["SettlementStatement", ofSettlement],
  ["IssuedCertificate", (document) => ofCertificate({ ...document, result: document.verdict ?? null })],
  ["IssuedSellerCertificate", ofSellerCertificate],
  ["ReversedCertificate", (document) => ofMark(document, "reversed, so it no longer counts")],
  ["CorrectedSellerCertificate", (document) => ofMark(document, "corrected, so it no longer counts")],
  ["PublishedProof", (document) => ofMark(document, "the proof of its FAIL is published")],
];

function ofWallet({ credentialSubject }: JsonObject): Claims {
  const subject = objectIn(credentialSubject);
  return {
    kind: "wallet",
    wallet: addressIn(subject.wallet),
    about: `wallet ${plain(subject.wallet)}`,
    summary: standingOf(subject),
    details: Object.entries(objectIn(subject.capabilities)).map(
      ([name, capability]) => `${plain(name)}: ${resultOf(objectIn(capability))}`,
    ),
  };
}

function resultOf({ result, fresh, valid_until: until }: JsonObject): string {
  if (result !== "pass" && result !== "fail") return "not tested";
  return `${result.toUpperCase()}${fresh === true ? ` until ${plain(until)}` : ", no longer fresh"}`;
}

function ofSeller({ credentialSubject }: JsonObject): Claims {
  const subject = objectIn(credentialSubject);
  return { ...ABOUT_NONE, kind: "seller", about: `seller ${plain(subject.id)}`, summary: standingOf(subject) };
}

function ofCertificate({ wallet, product, result, id, certificate = id }: JsonObject): Claims {
  return {
    kind: "certificate",
    wallet: addressIn(wallet),
    about: `wallet ${plain(wallet)}`,
    summary: `${plain(result).toUpperCase()} in ${plain(product)}`,
    details: [`certificate ${plain(certificate)}: one test run, which does not show whether the wallet is verified`],
  };
}

function ofSellerCertificate({ origin, path_prefix: prefix, verdict, id }: JsonObject): Claims {
  return {
    ...ABOUT_NONE,
    kind: "certificate",
    about: `seller ${plain(origin)}${prefix === "/" ? "" : plain(prefix)}`,
    summary: `${plain(verdict).toUpperCase()} in an exam`,
    details: [`certificate ${plain(id)}: one exam, which does not show whether the seller is verified`],
  };
}

const ofMark = ({ certificate }: JsonObject, summary: string): Claims => ({
  ...ABOUT_NONE,
  kind: "log",
  about: `certificate ${plain(certificate)}`,
  summary,
});

function ofVerdict(document: JsonObject): Claims {
  const { verdict, category, conditions_sha256: sha256, deal_ref: deal, verdict_url: url } = document;
  const { payer, payee } = objectIn(document.parties);
  const { id: earlier } = objectIn(document.supersedes);
  const named = ([name, party]: readonly [string, Json | undefined]) =>
    isObject(party) ? [`${name} ${plain(party.wallet)}, as the claim names it`] : [];
  return {
    ...ABOUT_NONE,
    kind: "verdict",
    about: `the claim with conditions_sha256 ${plain(sha256)}`,
    summary: `verdict ${plain(verdict)} (${plain(category)})`,
    details: [
      ...(deal === undefined || deal === null ? [] : [`deal ${quote(deal)}`]),
      ...(
        [
          ["payer", payer],
          ["payee", payee],
        ] as const
      ).flatMap(named),
      ...(earlier === undefined ? [] : [`it supersedes the verdict ${plain(earlier)}`]),
      `a correction would supersede it: see ${plain(url)}`,
    ],
  };
}

function ofEvaluation({
  payment_id: payment,
  payer,
  merchant,
  amount_usd: usd,
  decision,
  rule_text: rule,
}: JsonObject): Claims {
  return {
    ...ABOUT_NONE,
    kind: "evaluation",
    about: `payment ${plain(payment)}: ${plain(usd)} USDC from ${plain(payer)} to ${plain(merchant)}`,
    summary: `decision ${plain(decision)}`,
    details: [quote(rule)],
  };
}

function ofSettlement(document: JsonObject): Claims {
  const { from, to, value, nonce } = objectIn(document.authorization);
  const { status, final, network } = objectIn(document.settlement);
  return {
    kind: "settlement",
    wallet: addressIn(from),
    about: `the authorization of ${plain(from)} to pay ${plain(value)} atomic USDC to ${plain(to)} on ${plain(network)}`,
    summary: `${plain(status)}${final === true ? ", final" : ""}`,
    details: [`nonce ${plain(nonce)}`],
  };
}

const addressIn = (value: Json | undefined): string | null =>
  typeof value === "string" && /^0x[0-9a-f]{40}$/i.test(value) ? value.toLowerCase() : null;

/** A plain word unchanged; anything else quoted. */
const plain = (value: Json | undefined): string =>
  typeof value === "string" && /^[\w.:/-]{1,200}$/.test(value) ? value : quote(value);
