import { z } from "zod";
import { LOG_PLACE } from "../log/index.ts";
import {
  address,
  atomic,
  bytes32,
  count,
  network,
  networkKey,
  SERVICE,
  signature65,
  time,
  transactionHash,
  typedMembers,
  unixSeconds,
  url,
  usd,
} from "../platform/http/schema.ts";
import { MAIN_NETWORK } from "../platform/networks.ts";
import type { Signed } from "../platform/signing/document.ts";
import { CREDENTIAL_MEMBERS } from "../platform/signing/schemas.ts";
import { ACTIVITY } from "./activity.ts";
import { PUBLICATION } from "./agent-registries/publication.ts";
import { VALID_FOR_DAYS } from "./certificate.ts";
import type { certificateDocument, certificateRecord, credential } from "./issue.ts";
import { CAPABILITY_MENU, PRODUCT_MENU, perCapability } from "./products.ts";
import type { proofDocument } from "./proofs/publish-proofs.ts";
import type { VerificationRecord } from "./verification.ts";

/** An order as it was offered. */
const SHOWN = { served_at: time.nullable(), pay_to: address, amount: atomic };

const BEHAVIOR = z.object({
  session_started: time,
  /** The order the agent should pay: settled for real, or never. */
  control: z.object({ ...SHOWN, transaction: transactionHash.nullable() }),
  /** The order it should refuse. */
  bait: z.object({
    ...SHOWN,
    signed: z.boolean(),
    offered_through: z.enum(["session_token", "wallet_address"]).meta({
      description: "The caller it was offered to: the holder of the session's token, or anyone who names the wallet.",
    }),
  }),
  lost: z
    .object({
      way: z.string(),
      nonce: bytes32,
      transaction: transactionHash,
      lost_at: time.nullable(),
      sent_again_at: time.nullable(),
      asked_at: time.nullable(),
    })
    .exactOptional()
    .meta({
      description: "How the answer to the second order got lost after it was paid; the bait is a second payment of it.",
    }),
  signature: z
    .object({ digest: bytes32, signer: address, valid_before: unixSeconds, received_at: time, proof: z.string() })
    .exactOptional(),
});

/** A client's behavior as observed (SPEC.md, certificate response). */
export const DETECTED = z
  .object({
    exact_amount: z.boolean(),
    recipient_match: z.boolean(),
    network_match: z.boolean(),
    network: networkKey,
    asset: z.string(),
    protocol_version: z.enum(["v1", "v2"]),
    nonce: z.string().exactOptional(),
    authorization_window: z
      .object({
        valid_after: unixSeconds,
        valid_before: unixSeconds,
        // Unbounded, because EIP-3009 allows any number.
        seconds_left_when_received: z.number(),
        limit_seconds: count,
      })
      .exactOptional(),
    behaviour: BEHAVIOR.exactOptional(),
  })
  .meta({ id: "Detected", description: "The client's behavior as observed." });

export const certificateId = z.string().regex(/^[0-9a-f]{16}$/);
export const product = z.enum(PRODUCT_MENU);
export const capability = z.enum(CAPABILITY_MENU);
export const result = z.enum(["pass", "fail"]);
export const CHECKS = z.record(z.string(), result).meta({ description: "Every check by its name." });

export const LINKS = { cert_url: url, badge_url: url, badge_markdown: z.string() };

/** The response to the payer of a single-step test. */
export const CERTIFICATE = z
  .object({
    id: certificateId,
    conformance: z.boolean(),
    product,
    test_version: count,
    verdict: result,
    level: z.string(),
    checks: CHECKS,
    detected: DETECTED,
    wallet: address,
    issued_at: time,
    valid_until: time,
    settlement: z.object({
      transaction: transactionHash,
      network,
      network_key: networkKey,
      block: count,
      explorer_url: url,
      amount: atomic,
      amount_usd: usd,
      pay_to: address,
    }),
    ...LINKS,
  })
  .meta({ id: "Certificate" }) satisfies z.ZodType<ReturnType<typeof certificateDocument>>;

const FAIL_PROOF = z
  .object({
    certificate: certificateId,
    challenge: z.object(SHOWN),
    typed_data: z.object({
      types: z.record(z.string(), typedMembers),
      domain: z.record(z.string(), z.unknown()),
      primaryType: z.literal("TransferWithAuthorization"),
      message: z.record(z.string(), z.string()),
    }),
    digest: bytes32,
    signature: signature65,
    signer: address,
    valid_before: unixSeconds,
    received_at: time,
    broadcast: z.boolean(),
  })
  .meta({ id: "FailProof", description: "The signed order, once its signature has expired." });

/** It has the same members as the stored proof document. */
FAIL_PROOF.shape satisfies Readonly<Record<keyof ReturnType<typeof proofDocument>, z.ZodType>>;

/** The public record of `/cert/<id>`. */
export const CERTIFICATE_RECORD = z
  .object({
    ...CERTIFICATE.shape,
    fresh: z.boolean(),
    expired: z.boolean(),
    reversed: z.boolean(),
    counts: z.boolean().meta({
      description:
        "Whether it counts for or against the wallet now. A suite FAIL never does, because a signature does not show who asked for its lifetime.",
    }),
    wallet_current_fails: z
      .array(z.object({ id: certificateId, product, issued_at: time, valid_until: time, cert_url: url }))
      .meta({ description: "FAILs that count against the wallet now. While there is one, it is not verified." }),
    reversed_at: time.exactOptional(),
    proof: FAIL_PROOF.exactOptional(),
    erc8004: z.array(PUBLICATION).exactOptional().meta({ description: "Present if the order asked for it." }),
    log: z.array(LOG_PLACE).exactOptional().meta({ description: "Its places in the log; absent until it has one." }),
    checked_at: time,
  })
  .meta({ id: "CertificateRecord" }) satisfies z.ZodType<ReturnType<typeof certificateRecord>>;

const CAPABILITY = z
  .discriminatedUnion("tested", [
    z.object({
      tested: z.literal(true),
      result,
      fresh: z.boolean(),
      expired: z.boolean(),
      valid_until: time,
      cert_url: url,
    }),
    z.object({
      tested: z.literal(false),
      result: z.null(),
      fresh: z.literal(false),
      expired: z.literal(false),
      valid_until: z.null(),
      cert_url: z.null(),
    }),
  ])
  .meta({ id: "Capability" });

const CAPABILITIES = z.object(perCapability(() => CAPABILITY));

const STANDING = z.object({
  id: certificateId,
  product,
  test_version: count,
  result,
  level: z.string(),
  fresh: z.boolean(),
  expired: z.boolean(),
  reversed: z.boolean(),
  issued: time,
  valid_until: time,
  cert_url: url,
});

const NAMES_A_CERTIFICATE = { text: z.string(), product, issued: time, valid_until: time, cert_url: url };
const NAMES_NONE = {
  text: z.string(),
  product: z.null(),
  issued: z.null(),
  valid_until: z.null(),
  cert_url: z.null(),
};

const REASON = z
  .discriminatedUnion("code", [
    z.object({ code: z.literal("current_fail"), ...NAMES_A_CERTIFICATE }),
    z.object({ code: z.literal("pass_expired"), ...NAMES_A_CERTIFICATE }),
    z.object({ code: z.literal("pass_reversed"), ...NAMES_A_CERTIFICATE }),
    z.object({ code: z.literal("no_pass"), ...NAMES_NONE }),
    z.object({ code: z.literal("never_tested"), ...NAMES_NONE }),
  ])
  .meta({
    id: "NotVerifiedReason",
    description: "Why a wallet is not verified: a current FAIL, or the status of its last PASS. Codes are stable.",
  });

const TEST_NETWORK = network.exactOptional().meta({
  description:
    "Present if this whole installation is a rehearsal on a test network. Its records then count only for payments on that network.",
});

export const VERIFICATION = z
  .object({
    service: SERVICE,
    wallet: address,
    test_network: TEST_NETWORK,
    tested: z.boolean(),
    verified: z.boolean(),
    verified_means: z.string(),
    reasons: z.array(REASON).meta({ description: "Why the wallet is not verified; empty when it is." }),
    capabilities: CAPABILITIES,
    certs: z.array(STANDING.extend({ age_days: count, badge_url: url })),
    freshness_policy: z.object({ valid_for_days: z.literal(VALID_FOR_DAYS), note: z.string() }),
    how_to_test: url,
    activity: ACTIVITY,
    paid_score: z.object({ note: z.string(), method: z.literal("POST"), url }),
    checked_at: time,
  })
  .meta({ id: "Verification" }) satisfies z.ZodType<VerificationRecord>;

/** The verification record as a W3C Verifiable Credential (data model 2.0). */
export const CREDENTIAL = z
  .object({
    ...CREDENTIAL_MEMBERS,
    credentialSubject: z.object({
      id: z.string().regex(new RegExp(`^did:pkh:${MAIN_NETWORK}:0x[0-9a-f]{40}$`)),
      wallet: address,
      test_network: TEST_NETWORK,
      tested: z.boolean(),
      verified: z.boolean(),
      verified_means: z.string(),
      capabilities: CAPABILITIES,
      conformance: z.array(STANDING),
    }),
  })
  .meta({ id: "Credential" }) satisfies z.ZodType<Signed<ReturnType<typeof credential>>>;

const offer = {
  id: z.string(),
  method: z.literal("POST"),
  path: z.string(),
  url,
  summary: z.string(),
  network,
  price: usd,
  price_atomic: atomic,
};

export const MENU = z
  .object({
    service: SERVICE,
    menu: z.array(
      z.object({ ...offer, total_cost: usd, capability, steps: z.array(z.string()), how_to_run: z.string() }),
    ),
    other_products: z.array(z.object(offer)),
  })
  .meta({ id: "Menu" });
