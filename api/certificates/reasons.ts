import { longDay } from "../platform/page/html.ts";
import { type CertificateSummary, isAboutWallet, isCurrent } from "./certificate-summary.ts";
import { certUrl } from "./links.ts";
import { PRODUCTS } from "./products.ts";

/**
 * Why a wallet is not verified: every current FAIL, newest first, and, without a current PASS, what became of the last
 * one. Empty for a verified wallet. The codes are stable, for programs to rely on.
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
      ? "No current PASS: none of the certificates is a PASS."
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
