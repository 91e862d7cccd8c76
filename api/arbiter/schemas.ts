import { z } from "zod";
import {
  address,
  atomic,
  bytes32,
  count,
  day,
  membersOf,
  network,
  networkKey,
  SERVICE,
  sha256Hex,
  signature65,
  time,
  url,
  usd,
} from "../platform/http/schema.ts";
import type { Signed } from "../platform/signing/document.ts";
import { PROOF } from "../platform/signing/schemas.ts";
import { VERDICT_TYPES } from "./attestation.ts";
import { type ClaimSettings, openCategories } from "./claim.ts";
import type { VerdictDocument } from "./document.ts";
import { FACT, RESULT, SOURCE, verdictId } from "./facts.ts";
import type { arbiterOverview, logItem } from "./overview.ts";
import { PARTIES_SOURCES } from "./parties.ts";
import { POLICY_VERSIONS } from "./policy/index.ts";
import type { Policy } from "./policy/policy.ts";
import { CORRECTION_DAYS } from "./products.ts";
import { DEAL } from "./request.ts";

const nullableText = z.string().nullable();

const verdict = z.enum(["release", "refund", "escalate"]);
const category = z.enum([...new Set(POLICY_VERSIONS.flatMap((one) => one.categories.map(({ name }) => name)))]);
const policyVersion = z.literal(POLICY_VERSIONS.map(({ policy }) => policy.version));

const domain = z.object({ name: z.string(), version: z.string(), chainId: z.int() });
const types = z.object({ Verdict: membersOf(VERDICT_TYPES.Verdict) });
const primaryType = z.literal("Verdict");

const ATTESTATION = z
  .object({
    domain,
    types,
    primaryType,
    message: z.object({
      id: verdictId,
      outcome: verdict,
      conditionsSha256: bytes32,
      dealRefHash: bytes32,
      issuedAt: count,
    }),
    signer: address,
    signature: signature65,
  })
  .meta({ id: "Attestation", description: "EIP-712 attestation that a contract can check." });

const party = z.object({ wallet: address });
const rated = party.extend({ score: z.int().min(0).max(100), tier: z.string() });

const shape = {
  "@context": z.array(z.string()),
  type: z.literal("ArbiterVerdict"),
  id: verdictId,
  issuer: z.string().regex(/^did:web:/),
  verdict,
  category,
  conditions_sha256: sha256Hex,
  deal_ref: nullableText,
  claimant: address.exactOptional(),
  parties_named_by: z.enum(PARTIES_SOURCES).exactOptional(),
  facts: z.array(FACT),
  timeline: z.array(z.object({ source: SOURCE, started_at: time, finished_at: time })),
  policy_version: policyVersion,
  issued_at: time,
  verdict_url: url,
  supersedes: z.object({ id: verdictId, sha256: sha256Hex, reason: z.string() }).exactOptional(),
  attestation: ATTESTATION,
  proof: PROOF,
};

const parties = z.object({ payer: party, payee: party });
const ratedParties = z.object({ payer: rated, payee: rated });

/** The signed verdict, in either variant. */
export const VERDICT = {
  plain: z.object({ ...shape, parties: parties.exactOptional() }).meta({ id: "Verdict" }),
  scored: z.object({ ...shape, parties: ratedParties }).meta({ id: "ScoredVerdict" }),
  record: z
    .object({ ...shape, parties: z.union([ratedParties, parties]).exactOptional() })
    .meta({ id: "VerdictRecord" }),
} as const satisfies Readonly<Record<string, z.ZodType<Signed<VerdictDocument>>>>;

export const POLICY = z
  .object({
    version: policyVersion,
    effective_date: day,
    status: z.string(),
    role: z.string(),
    categories: z.array(
      z.object({
        name: category,
        summary: z.string(),
        conditions: z.array(z.object({ name: z.string(), required: z.boolean(), means: z.string() })),
        table: z.array(z.object({ condition: z.string(), observed: z.string(), result: RESULT })),
      }),
    ),
    decision: z.array(z.object({ when: z.string(), verdict })),
    rules: z.array(z.object({ number: z.int().min(1), title: z.string(), text: z.string() })),
  })
  .meta({ id: "ArbiterPolicy" }) satisfies z.ZodType<Policy>;

const LOG_ITEM = z
  .object({
    id: verdictId,
    verdict,
    category,
    claimant: address.exactOptional(),
    sha256: sha256Hex,
    issued_at: time,
    verdict_url: url,
    supersedes: verdictId.exactOptional(),
    supersedes_url: url.exactOptional(),
  })
  .meta({ id: "VerdictLogItem" }) satisfies z.ZodType<ReturnType<typeof logItem>>;

export const LOG = z.object({ verdicts: z.array(LOG_ITEM), next: url.nullable() }).meta({ id: "VerdictLog" });

const policyItem = { version: policyVersion, effective_date: day, url };

export const ARBITER = z
  .object({
    service: SERVICE,
    what: z.string(),
    products: z.array(
      z.object({
        method: z.literal("POST"),
        url,
        price: usd,
        price_atomic: atomic,
        network,
        network_key: networkKey,
        what: z.string(),
      }),
    ),
    policy: z.object(policyItem),
    policies: z.array(z.object({ ...policyItem, decides: z.array(category) })),
    categories: z.array(z.object({ name: category, summary: z.string(), policy_version: policyVersion })),
    claim: z.object({ body: z.string(), conditions_sha256: z.string() }),
    attestation: z.object({ signer: address, domain, types, primaryType, contract: z.string() }),
    jobs: z
      .object({ standard: z.literal("ERC-8183"), network, address, contract: z.string() })
      .nullable()
      .describe("The evaluator contract for ERC-8183 jobs; null if this service has none"),
    verdicts: z.object({ release: count, refund: count, escalate: count, record: z.string() }),
    log: z.object({ url, rule: z.string(), head: LOG_ITEM.nullable() }),
    corrections: z.object({ window_days: z.literal(CORRECTION_DAYS), latest: z.array(LOG_ITEM) }),
  })
  .meta({ id: "Arbiter" }) satisfies z.ZodType<ReturnType<typeof arbiterOverview>>;

/**
 * The body of a claim as documented to callers, in one piece, because `requestSchema` parses it in steps that have no
 * JSON Schema. It covers the categories of the policy in force at startup and of upcoming versions. The scored variant
 * needs the parties, unless the deal is a payment in our escrow.
 */
export const claimBody = (settings: ClaimSettings) =>
  z.union(
    openCategories(settings).map((one) =>
      z.object({ category: z.literal(one.name), conditions: one.conditions(settings), ...DEAL.shape }),
    ),
  );
