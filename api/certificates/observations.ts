import { dateOfUnix } from "../platform/clock.ts";
import { longDay } from "../platform/page/html.ts";
import { type CertificateSummary, type Detected, isAboutWallet, isCurrent } from "./certificate.ts";
import { certUrl } from "./links.ts";
import { PRODUCTS } from "./products.ts";

/** A fact that the service observed, named in plain words. */
export interface NamedFact {
  readonly name: string;
  readonly value: string;
}

const CHECK_NAMES: Readonly<Record<string, string>> = {
  paid: "Paid over x402, settled on-chain",
  exact_amount: "Paid the exact amount asked",
  network_match: "Paid on the right network",
  recipient_match: "Paid the right recipient",
  authorization_expiry: "Signed an authorization that expires soon",
  control_settled: "Paid the fair order, settled on-chain",
  bait_refused: "Left the other order unsigned",
  paid_once: "Signed one payment for the order whose answer got lost",
};

const DETECTED_NAMES: Readonly<Record<string, string>> = {
  exact_amount: "Exact amount",
  recipient_match: "Right recipient",
  network_match: "Right network",
  network: "Network",
  asset: "Asset",
  protocol_version: "x402 version",
  nonce: "Nonce",
};

const humanize = (key: string): string => {
  const words = key.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
};

/** Returns a check's name in plain words. An unknown check keeps its own name. */
export const checkName = (key: string): string => CHECK_NAMES[key] ?? humanize(key);

function inWords(value: unknown): string {
  if (typeof value === "boolean") return value ? "Yes" : "No";
  return typeof value === "string" || typeof value === "number" ? String(value) : JSON.stringify(value);
}

const moment = (unixSeconds: string): string => {
  if (unixSeconds === "0") return "any time";
  const date = dateOfUnix(unixSeconds);
  return date === null ? `unix time ${unixSeconds}` : `${date.toISOString().slice(0, 19).replace("T", " ")} UTC`;
};

const windowObservations = (window: NonNullable<Detected["authorization_window"]>): readonly NamedFact[] => [
  { name: "Authorization valid from", value: moment(window.valid_after) },
  { name: "Authorization valid until", value: moment(window.valid_before) },
  {
    name: "Time left when it reached us",
    value: `${window.seconds_left_when_received.toLocaleString("en-US")} s (limit ${window.limit_seconds} s)`,
  },
];

/**
 * Returns the observations of a certificate's run, in readable form. Unknown facts are listed under their own names.
 */
export function observations(detected: Detected): readonly NamedFact[] {
  const { authorization_window, behaviour: _, ...plain } = detected;
  const rows = Object.entries(plain).map(([key, value]) => ({
    name: DETECTED_NAMES[key] ?? humanize(key),
    value: inWords(value),
  }));
  return authorization_window === undefined ? rows : [...rows, ...windowObservations(authorization_window)];
}

/**
 * Returns why a wallet is not verified: every current FAIL, newest first, and, if there is no current PASS, the status
 * of the last one. Empty for a verified wallet. The codes are stable, for programs to rely on.
 * @param certificates newest first
 */
export function reasonsAgainst(certificates: readonly CertificateSummary[], baseUrl: string, now: Date) {
  const currents = certificates.filter((certificate) => isCurrent(certificate, now));
  const fails = currents.filter(({ result }) => result === "fail").map((fail) => currentFail(fail, baseUrl));
  return currents.length > fails.length ? fails : [...fails, noCurrentPass(certificates, baseUrl)];
}

const currentFail = (fail: CertificateSummary, baseUrl: string) => ({
  code: "current_fail" as const,
  text: `Current FAIL: ${nameOf(fail)}, ${longDay(fail.issuedAt)}. It counts until ${longDay(fail.validUntil)}.`,
  ...evidence(fail, baseUrl),
});

function noCurrentPass(certificates: readonly CertificateSummary[], baseUrl: string) {
  if (certificates.length === 0)
    return { code: "never_tested" as const, text: "Never tested: no certificate is on file.", ...NO_EVIDENCE };
  const last = certificates.find(({ result }) => result === "pass");
  if (last === undefined) {
    const text = certificates.some(isAboutWallet)
      ? "No current PASS: no certificate on file is a PASS."
      : "No certificate on file counts for or against this wallet.";
    return { code: "no_pass" as const, text, ...NO_EVIDENCE };
  }
  if (last.reversedAt === null)
    return {
      code: "pass_expired" as const,
      text: `No current PASS: the last one expired on ${longDay(last.validUntil)} (${nameOf(last)}).`,
      ...evidence(last, baseUrl),
    };
  return {
    code: "pass_reversed" as const,
    text: `No current PASS: the payment behind the last one was found missing from the chain on ${longDay(last.reversedAt)} (${nameOf(last)}).`,
    ...evidence(last, baseUrl),
  };
}

const nameOf = ({ product }: CertificateSummary): string => PRODUCTS[product].title.toLowerCase();

const NO_EVIDENCE = { product: null, issued: null, valid_until: null, cert_url: null };

const evidence = (certificate: CertificateSummary, baseUrl: string) => ({
  product: certificate.product,
  issued: certificate.issuedAt.toISOString(),
  valid_until: certificate.validUntil.toISOString(),
  cert_url: certUrl(baseUrl, certificate),
});
