import { createHash } from "node:crypto";
import { type LogPlace, placeDocument } from "../log/index.ts";
import type { PaymentKey, Sale } from "../platform/http/route.ts";
import { formatUsd } from "../platform/money.ts";
import { explorerTransactionUrl, MAIN_NETWORK, NETWORKS, REHEARSED_ON } from "../platform/networks.ts";
import { type Publication, publicationEntry } from "./agent-registries/publication.ts";
import {
  type Certificate,
  currentFails,
  isCurrent,
  type MarkedCertificate,
  validUntil,
  type WalletFail,
} from "./certificate.ts";
import type { Kind } from "./kinds/kind.ts";
import { badgeMarkdown, badgeUrl, certUrl } from "./links.ts";
import type { Product } from "./products.ts";
import type { VerificationRecord } from "./verification.ts";

/**
 * Returns 16 hex digits derived from the authorization and the product, so that a reorganization that moves the
 * settlement does not change the ID.
 */
export const certificateId = ({ network, asset, payer, nonce }: PaymentKey, product: Product): string =>
  createHash("sha256")
    .update(`certificate|${network}|${asset}|${payer}|${nonce}|${product}`)
    .digest("hex")
    .slice(0, 16);

export function issue(kind: Kind, sale: Sale<unknown>, now: Date): Certificate {
  const { result, level, checks, detected } = kind.judge(sale);
  return {
    id: certificateId(sale.payment, kind.product),
    product: kind.product,
    testVersion: kind.testVersion,
    result,
    level,
    checks,
    detected,
    wallet: sale.payment.payer,
    issuedAt: now,
    validUntil: validUntil(now),
    settlement: {
      network: sale.payment.network,
      transaction: sale.settlement.transaction,
      block: sale.settlement.block,
      amountAtomic: sale.value,
      payTo: sale.payTo,
    },
  };
}

/** Returns the certificate response (SPEC.md): the payer's copy, and the stable part of the public record. */
export function certificateDocument(certificate: Certificate, baseUrl: string) {
  const { id, product, result, level, checks, detected, wallet, issuedAt, settlement } = certificate;
  return {
    id,
    conformance: result === "pass",
    product,
    test_version: certificate.testVersion,
    verdict: result,
    level,
    checks,
    detected,
    wallet,
    issued_at: issuedAt.toISOString(),
    valid_until: certificate.validUntil.toISOString(),
    settlement: {
      transaction: settlement.transaction,
      network: settlement.network,
      network_key: NETWORKS[settlement.network].key,
      block: settlement.block,
      explorer_url: explorerTransactionUrl(settlement.network, settlement.transaction),
      amount: settlement.amountAtomic.toString(),
      amount_usd: formatUsd(settlement.amountAtomic),
      pay_to: settlement.payTo,
    },
    cert_url: certUrl(baseUrl, certificate),
    badge_url: badgeUrl(baseUrl, certificate),
    badge_markdown: badgeMarkdown(baseUrl, certificate),
  };
}

export interface RecordParts {
  readonly publications: readonly Publication[];
  readonly places: readonly LogPlace[];
  /** No trailing slash. */
  readonly baseUrl: string;
}

/** Returns the public record of `/cert/<id>`: the certificate and its current state. */
export function certificateRecord(certificate: MarkedCertificate, parts: RecordParts, now: Date) {
  const { publications, places, baseUrl } = parts;
  const expired = now.getTime() >= certificate.validUntil.getTime();
  const reversed = certificate.reversedAt !== null;
  return {
    ...certificateDocument(certificate, baseUrl),
    fresh: !expired && !reversed,
    expired,
    reversed,
    counts: isCurrent(certificate, now),
    wallet_current_fails: currentFails(certificate, now).map((fail) => failEntry(fail, baseUrl)),
    ...(certificate.reversedAt === null ? {} : { reversed_at: certificate.reversedAt.toISOString() }),
    ...(certificate.proof === null ? {} : { proof: certificate.proof }),
    ...(publications.length === 0 ? {} : { erc8004: publications.map((one) => publicationEntry(one, baseUrl)) }),
    ...(places.length === 0 ? {} : { log: places.map((place) => placeDocument(place, baseUrl)) }),
    checked_at: now.toISOString(),
  };
}

const failEntry = (fail: WalletFail, baseUrl: string) => ({
  id: fail.id,
  product: fail.product,
  issued_at: fail.issuedAt.toISOString(),
  valid_until: fail.validUntil.toISOString(),
  cert_url: certUrl(baseUrl, fail),
});

/**
 * The second context gives terms that the first leaves undefined an issuer-dependent meaning (VC Data Model 2.0,
 * section 5.2).
 */
export const CONTEXT = [
  "https://www.w3.org/ns/credentials/v2",
  "https://www.w3.org/ns/credentials/undefined-terms/v2",
] as const;

/**
 * Returns a verification record as an unsigned W3C Verifiable Credential (data model 2.0). It expires with the first of
 * its certificates that still count. If none counts, it stays true and has no `validUntil`.
 * @param issuer the service's did:web identifier
 * @param url where to find the wallet's newest credential
 */
export function credential(record: VerificationRecord, issuer: string, url: string) {
  const { wallet, tested, verified, verified_means, capabilities, certs, checked_at } = record;
  const ends = certs.flatMap(({ fresh, valid_until }) => (fresh ? [valid_until] : [])).sort();
  return {
    "@context": CONTEXT,
    id: url,
    type: ["VerifiableCredential", "AgentPaymentCredential"],
    issuer,
    validFrom: checked_at,
    ...(ends[0] === undefined ? {} : { validUntil: ends[0] }),
    credentialSubject: {
      id: `did:pkh:${MAIN_NETWORK}:${wallet}`,
      wallet,
      ...(REHEARSED_ON && { test_network: REHEARSED_ON.id }),
      tested,
      verified,
      verified_means,
      capabilities,
      conformance: certs.map(({ age_days: _, badge_url: __, ...lasting }) => lasting),
    },
  };
}

/**
 * Returns the certificate as it was issued, without members that a reader can derive. A reorganization may move its
 * settlement later.
 */
export function issuedCertificate(certificate: Certificate) {
  const document = certificateDocument(certificate, "");
  const { conformance: _, cert_url: __, badge_url: ___, badge_markdown: ____, settlement, ...members } = document;
  const { transaction, network, block, amount, pay_to } = settlement;
  return { ...members, settlement: { transaction, network, block, amount, pay_to } };
}
