import { createChain } from "../platform/chain/chain.ts";
import { openAccount } from "../platform/chain/remote-signer.ts";
import { sleepUnlessAborted } from "../platform/clock.ts";
import type { Config } from "../platform/config/config.ts";
import type { Listed } from "../platform/http/route.ts";
import { eachNetwork, MAIN_NETWORK } from "../platform/networks.ts";
import { type Platform, under } from "../platform/slice.ts";
import type { Address } from "../platform/wallet.ts";
import { createGuardedFetch } from "../platform/web/guarded-fetch/fetch.ts";
import { guard } from "../platform/web/target.ts";
import { type Arbiter, createArbiter as createClaims } from "./arbiter.ts";
import { createTransactions, requireEvaluator } from "./chain.ts";
import type { EvidenceParts } from "./gather-evidence.ts";
import { createGithubChecks } from "./github.ts";
import type { EscrowDeals, Tiers } from "./parties.ts";
import { POLICY_VERSIONS } from "./policy/index.ts";
import type { VerdictParts } from "./reach-verdict.ts";
import { type ArbiterRouteParts, arbiterRoutes } from "./routes.ts";
import { countedVerdicts, createVerdictStore } from "./store.ts";

export type { Arbiter } from "./arbiter.ts";
export { type Claim, type ClaimSettings, claimSchema } from "./claim.ts";
export { NO_TRANSACTIONS } from "./evidence.ts";
export type { Fact } from "./facts.ts";
export { type EvidenceParts, gatherEvidence } from "./gather-evidence.ts";
export { createGithubChecks } from "./github.ts";
export type { Tiers } from "./parties.ts";
export { POLICY_VERSIONS } from "./policy/index.ts";
export type { Policy, Verdict } from "./policy/policy.ts";
export { measure } from "./policy/v1/payload-hash.ts";
export { CORRECTION_DAYS } from "./products.ts";

interface ArbiterNeeds extends Pick<ArbiterRouteParts, "publicLog"> {
  readonly tiers: Tiers;
  /** The service's own wallets, which cannot be parties to a claim because the arbiter would not be neutral. */
  readonly ownWallets: readonly string[];
  /** Looks up the parties of escrow payments. */
  readonly deals: EscrowDeals;
  /** Waits between two attempts to gather evidence; set in tests. */
  readonly wait?: EvidenceParts["wait"] | undefined;
}

/** Creates the external arbiter: claims, verdicts, the policy, and the log of both. */
export async function createArbiter(
  platform: Platform,
  config: Config,
  { publicLog, deals, ownWallets: others, ...needs }: ArbiterNeeds,
): Promise<{ readonly arbiter: Arbiter; readonly routes: readonly Listed[] }> {
  const record = recordParts(platform, config, needs);
  const evaluator = config.evaluatorAddress;
  if (evaluator !== null)
    await requireEvaluator(platform.chains[MAIN_NETWORK].client, evaluator, record.attestor.address);
  const own = [config.payTo, record.attestor.address, ...others].map((one) => one.toLowerCase() as Address);
  const ownWallets = [...new Set(own)];
  const arbiter = createClaims({ ...record, deals, ownWallets });
  const claims = { ...guard(config), ownWallets, policies: record.policies, now: record.now };
  const { baseUrl } = config;
  return { arbiter, routes: under("Arbiter", arbiterRoutes({ arbiter, claims, publicLog, evaluator, baseUrl })) };
}

/** Returns everything needed to reach and record a verdict. */
export function recordParts(
  {
    pool,
    meter,
    now,
    keys: { signer },
  }: Pick<Platform, "pool" | "meter" | "now"> & {
    readonly keys: Pick<Platform["keys"], "signer">;
  },
  config: Config,
  { tiers, wait = sleepUnlessAborted }: Pick<ArbiterNeeds, "tiers" | "wait">,
): VerdictParts {
  const { baseUrl, github, arbiterKey, rpcUrls, logBlockRange, rpcBatch } = config;
  const userAgent = `agent-payment-trust-arbiter/1 (+${baseUrl}/arbiter)`;
  const stored = createVerdictStore(pool);
  return {
    fetcher: createGuardedFetch({ ...guard(config), userAgent }),
    checkRuns: createGithubChecks({ ...github, userAgent }),
    transactions: createTransactions(
      eachNetwork((network) => createChain(network, { rpcUrl: rpcUrls[network], logBlockRange, rpcBatch })),
    ),
    policies: POLICY_VERSIONS,
    wait,
    store: meter === null ? stored : countedVerdicts(stored, meter),
    signer,
    attestor: openAccount(arbiterKey),
    tiers,
    baseUrl,
    now,
  };
}
