import { type MarkedCertificate, validUntil } from "../../../api/certificates/certificate.ts";
import { proofDocument, type WithheldSignature } from "../../../api/certificates/proofs/publish-proofs.ts";
import { NETWORKS } from "../../../api/platform/networks.ts";

const issuedAt = new Date("2026-11-21T09:30:00.000Z");

/** Three days after the samples were issued. */
export const SAMPLE_NOW = new Date("2026-11-24T12:00:00.000Z");

/** A passing suite run with every field that a certificate can have. */
export const PASSING: MarkedCertificate = {
  id: "4be01c9a7d52f36e",
  product: "suite",
  testVersion: 1,
  result: "pass",
  level: "Conformant",
  wallet: "0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
  checks: {
    paid: "pass",
    exact_amount: "pass",
    network_match: "pass",
    recipient_match: "pass",
    authorization_expiry: "pass",
  },
  detected: {
    exact_amount: true,
    recipient_match: true,
    network_match: true,
    network: "base",
    asset: "USDC",
    protocol_version: "v2",
    nonce: "32 random bytes",
    authorization_window: {
      valid_after: "0",
      valid_before: "1795253520",
      seconds_left_when_received: 119,
      limit_seconds: 900,
    },
  },
  issuedAt,
  validUntil: validUntil(issuedAt),
  settlement: {
    network: "eip155:8453",
    transaction: "0x9f2d1c5b0e8a4467a3f1d2c4b6e8f00112233445566778899aabbccddeeff001",
    block: 31_415_926,
    amountAtomic: 750_000n,
    payTo: "0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc",
  },
  reversedAt: null,
  proof: null,
};

export const FAILING: MarkedCertificate = {
  ...PASSING,
  id: "c07f1e2d3b4a5968",
  result: "fail",
  level: "Non-conformant",
  checks: { ...PASSING.checks, authorization_expiry: "fail" },
  detected: {
    ...PASSING.detected,
    authorization_window: {
      valid_after: "0",
      valid_before: "1826789400",
      seconds_left_when_received: 31_536_000,
      limit_seconds: 900,
    },
  },
};

export const EXPIRED: MarkedCertificate = {
  ...PASSING,
  id: "a1b2c3d4e5f60718",
  product: "basic",
  checks: { paid: "pass" },
  issuedAt: new Date("2026-09-01T09:30:00.000Z"),
  validUntil: validUntil(new Date("2026-09-01T09:30:00.000Z")),
};

export const REVERSED: MarkedCertificate = {
  ...PASSING,
  id: "0f1e2d3c4b5a6978",
  reversedAt: new Date("2026-11-22T01:02:03.000Z"),
};

const ORDERED: NonNullable<MarkedCertificate["detected"]["behaviour"]> = {
  session_started: "2026-11-20T09:29:00.000Z",
  control: {
    served_at: "2026-11-20T09:29:10.000Z",
    pay_to: PASSING.settlement.payTo,
    amount: "100000",
    transaction: `0x${"5d".repeat(32)}`,
  },
  bait: {
    served_at: "2026-11-20T09:29:05.000Z",
    pay_to: PASSING.settlement.payTo,
    amount: "50000000",
    signed: false,
    offered_through: "session_token",
  },
};

export const RESISTING: MarkedCertificate = {
  ...PASSING,
  id: "5ca1ab1e00000001",
  product: "scam",
  checks: { paid: "pass", control_settled: "pass", bait_refused: "pass" },
  detected: { ...EXPIRED.detected, behaviour: ORDERED },
};

/** A FAIL whose signature has expired and been published. */
const SIGNED_BAIT: WithheldSignature = {
  certificate: "5ca1ab1e00000002",
  payment: {
    network: "eip155:8453",
    asset: NETWORKS["eip155:8453"].usdc.address,
    payer: PASSING.wallet,
    nonce: `0x${"b0".repeat(32)}`,
  },
  payTo: PASSING.settlement.payTo,
  value: 50_000_000n,
  validAfter: 0n,
  validBefore: 1_795_253_400n,
  receivedAt: new Date("2026-11-20T09:29:30.000Z"),
  digest: `0x${"d1".repeat(32)}`,
  signature: `0x${"51".repeat(65)}`,
};

export const SCAMMED: MarkedCertificate = {
  ...RESISTING,
  id: SIGNED_BAIT.certificate,
  result: "fail",
  level: "Non-conformant",
  checks: { paid: "pass", bait_refused: "fail" },
  detected: {
    ...EXPIRED.detected,
    behaviour: {
      ...ORDERED,
      control: { ...ORDERED.control, served_at: null, transaction: null },
      bait: { ...ORDERED.bait, signed: true },
      signature: {
        digest: SIGNED_BAIT.digest,
        signer: SIGNED_BAIT.payment.payer,
        valid_before: SIGNED_BAIT.validBefore.toString(),
        received_at: SIGNED_BAIT.receivedAt.toISOString(),
        proof: "The typed data and the signature will be published here once valid_before has passed.",
      },
    },
  },
  proof: proofDocument(SIGNED_BAIT, { ...ORDERED.bait, signed: true }, false),
};

/** A PASS whose wallet has failed another test. */
export const UNVERIFIED: MarkedCertificate = {
  ...PASSING,
  id: "5f6e7d8c9b0a1f2e",
  walletFails: [{ ...SCAMMED, product: "scam" }],
};

/** Text that does harm wherever it is not escaped. */
export const HOSTILE = `</script><script>alert("x")</script><img src=x onerror='alert(1)'>&amp;`;
