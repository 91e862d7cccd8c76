import { formatUsd } from "../platform/money.ts";
import { NETWORKS } from "../platform/networks.ts";
import type { Address } from "../platform/wallet.ts";
import { attestationDomain, VERDICT_TYPES } from "./attestation.ts";
import { conditionsSha256 } from "./claim.ts";
import { verdictPath } from "./document.ts";
import { POLICY_VERSIONS } from "./policy/index.ts";
import type { Policy } from "./policy/policy.ts";
import { type DecidingPolicies, type DecidingPolicy, versionFor } from "./policy/version.ts";
import { ARBITER_NETWORK, CORRECTION_DAYS, PRICES, type Variant } from "./products.ts";
import type { ListedVerdict, VerdictTotals } from "./store.ts";

export const POLICY_PATH = "/arbiter/policy";
/** Returns the path of one version of the policy, in force or not. */
export const policyPath = (version: number): string => `${POLICY_PATH}?version=${version}`;

export const LOG_PATH = "/arbiter/log";

const EVALUATOR = "contracts/ArbiterEvaluator.sol";

export interface OverviewParts {
  readonly attestor: Address;
  /** The versions that decide claims, earliest first. */
  readonly policies: DecidingPolicies;
  readonly totals: VerdictTotals;
  readonly head: ListedVerdict | null;
  readonly corrections: readonly ListedVerdict[];
  /** The evaluator contract of ERC-8183 jobs, or null if there is none. */
  readonly evaluator: Address | null;
  readonly baseUrl: string;
}

/** Returns an overview of the arbiter: its products, policies, signer, and newest verdicts. */
export function arbiterOverview(parts: OverviewParts) {
  const { attestor, policies, totals, head, corrections, evaluator, baseUrl } = parts;
  const { chainId, key } = NETWORKS[ARBITER_NETWORK];
  const product = (path: string, price: bigint, what: string) => ({
    method: "POST",
    url: `${baseUrl}${path}`,
    price: formatUsd(price),
    price_atomic: price.toString(),
    network: ARBITER_NETWORK,
    network_key: key,
    what,
  });
  return {
    service: "Agent Payment Trust Service",
    what: "An escrow system submits a machine-verifiable claim. The arbiter gathers its own evidence, decides by published rules, and signs a verdict: release, refund or escalate. It never holds funds.",
    products: [
      product("/arbiter/verify", PRICES.plain, "A signed verdict"),
      product("/arbiter/verify/scored", PRICES.scored, "The same, plus both parties' risk tiers"),
    ],
    policy: policyItem(policies[0].policy, `${baseUrl}${POLICY_PATH}`),
    policies: policies.map(({ policy, decides }) => ({
      ...policyItem(policy, `${baseUrl}${policyPath(policy.version)}`),
      decides,
    })),
    categories: policies.flatMap(categoriesOf),
    claim: {
      body: "{category, conditions, deal_ref?, parties? {payer, payee}}",
      conditions_sha256:
        "SHA-256, in lowercase hex, of the canonical JSON (RFC 8785) of {category, conditions}, exactly as submitted: every field of conditions, and nothing else from the body.",
    },
    attestation: {
      signer: attestor.toLowerCase(),
      domain: attestationDomain(chainId),
      types: VERDICT_TYPES,
      primaryType: "Verdict",
      contract: "contracts/VerdictLib.sol",
    },
    jobs: evaluator && { standard: "ERC-8183", network: ARBITER_NETWORK, address: evaluator, contract: EVALUATOR },
    verdicts: { ...totals, record: `${baseUrl}${verdictPath("<id>")}` },
    log: {
      url: `${baseUrl}${LOG_PATH}`,
      rule: "Every verdict, with its corrections, is an entry of the append-only transparency log (/log), which proves that none was changed or removed.",
      head: head && logItem(head, baseUrl),
    },
    corrections: { window_days: CORRECTION_DAYS, latest: corrections.map((entry) => logItem(entry, baseUrl)) },
  };
}

const policyItem = ({ version, effective_date }: Policy, url: string) => ({ version, effective_date, url });

const categoriesOf = ({ policy, decides }: DecidingPolicy) =>
  policy.categories
    .filter(({ name }) => decides.includes(name))
    .map(({ name, summary }) => ({ name, summary, policy_version: policy.version }));

/** Returns one entry of the list of verdicts. */
export const logItem = (
  { id, outcome, category, claimant, sha256, issuedAt, supersedes }: ListedVerdict,
  baseUrl: string,
) => ({
  id,
  verdict: outcome,
  category,
  ...(claimant !== null && { claimant }),
  sha256,
  issued_at: issuedAt.toISOString(),
  verdict_url: `${baseUrl}${verdictPath(id)}`,
  ...(supersedes !== null && { supersedes, supersedes_url: `${baseUrl}${verdictPath(supersedes)}` }),
});

const CLAIM = {
  category: "http-delivery",
  conditions: { url: "https://merchant.example/report.pdf", expect_status: 200, min_bytes: 1024 },
  deal_ref: "order-4711",
};
const PARTIES = {
  payer: "0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
  payee: "0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc",
};

export const EXAMPLE_INPUT: Readonly<Record<Variant, Readonly<Record<string, unknown>>>> = {
  plain: CLAIM,
  scored: { ...CLAIM, parties: PARTIES },
};

/** Returns the members of a verdict that callers read first. */
export const exampleOutput = (
  variant: Variant,
  { baseUrl, now }: { readonly baseUrl: string; readonly now: Date },
): Readonly<Record<string, unknown>> => ({
  id: "0123456789abcdef0123456789abcdef",
  verdict: "release",
  category: CLAIM.category,
  conditions_sha256: conditionsSha256(CLAIM.category, CLAIM.conditions),
  deal_ref: CLAIM.deal_ref,
  policy_version: versionFor(POLICY_VERSIONS, CLAIM.category, now)?.policy.version,
  verdict_url: `${baseUrl}/arbiter/verdict/0123456789abcdef0123456789abcdef`,
  ...(variant === "scored" && {
    parties: {
      payer: { wallet: PARTIES.payer, score: 92, tier: "A" },
      payee: { wallet: PARTIES.payee, score: 61, tier: "C" },
    },
  }),
});
