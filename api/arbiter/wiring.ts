import type { PublicClient } from "viem";
import { COMMERCE_PAYMENTS_CUSTODIES } from "../../contracts/commerce-payments.ts";
import { requireEvaluator } from "../escrow/contracts-chain.ts";
import type { EscrowChain } from "../escrow/ports.ts";
import type { EscrowWires } from "../escrow/wiring.ts";
import { createChain } from "../platform/chain/chain.ts";
import { sleepUnlessAborted } from "../platform/clock.ts";
import { eachNetwork } from "../platform/networks.ts";
import type { Address } from "../platform/wallet.ts";
import { guard } from "../platform/web/guard-settings.ts";
import { createGuardedFetch } from "../platform/web/guarded-fetch/fetch.ts";
import { createArbiter } from "./arbiter.ts";
import { createAttestor } from "./attestation.ts";
import { createTransactions } from "./chain.ts";
import { createGithubChecks } from "./github.ts";
import type { Tiers } from "./parties.ts";
import { POLICY_VERSIONS } from "./policy/index.ts";
import type { VerdictParts } from "./reach-verdict.ts";
import type { VerdictStore } from "./store.ts";

export interface RecordWires extends Pick<EscrowWires, "config" | "signer" | "now" | "wait"> {
  readonly store: VerdictStore;
  readonly tiers: Tiers;
}

/** Everything needed to reach and record a verdict. */
export function wireRecord({
  config,
  store,
  signer,
  now,
  tiers,
  wait = sleepUnlessAborted,
}: RecordWires): VerdictParts {
  const { baseUrl, github, arbiterKey, rpcUrls, logBlockRange, rpcBatch } = config;
  const userAgent = `agent-payment-trust-arbiter/1 (+${baseUrl}/arbiter)`;
  return {
    fetcher: createGuardedFetch({ ...guard(config), userAgent }),
    checkRuns: createGithubChecks({ ...github, userAgent }),
    transactions: createTransactions(
      eachNetwork((network) => createChain(network, { rpcUrl: rpcUrls[network], logBlockRange, rpcBatch })),
      custodiesOf(config),
    ),
    policies: POLICY_VERSIONS,
    wait,
    store,
    signer,
    attestor: createAttestor(arbiterKey),
    tiers,
    baseUrl,
    now,
  };
}

/** What holds payments for others, or collects them for that: base/commerce-payments and our own contracts. */
const custodiesOf = ({ escrowAddresses }: RecordWires["config"]): ReadonlySet<string> =>
  new Set([...COMMERCE_PAYMENTS_CUSTODIES, ...escrowAddresses].map((one) => one.toLowerCase()));

export interface ArbiterWires extends RecordWires {
  readonly ownWallets: readonly string[];
  readonly escrowChain: EscrowChain;
  readonly client: PublicClient;
}

/** The external arbiter, and what it accepts as a claim. */
export async function wireArbiter({ ownWallets: others, escrowChain, client, ...wires }: ArbiterWires) {
  const record = wireRecord(wires);
  const evaluator = wires.config.evaluatorAddress;
  if (evaluator !== null) await requireEvaluator(client, evaluator, record.attestor.address);
  const own = [wires.config.payTo, record.attestor.address, ...others].map((one) => one.toLowerCase() as Address);
  const ownWallets = [...new Set(own)];
  const deals = {
    async parties(payment: `0x${string}`) {
      const hold = await escrowChain.holdById(payment);
      return hold && { payer: hold.info.payer, payee: hold.info.receiver };
    },
  };
  return {
    arbiter: createArbiter({ ...record, deals, ownWallets }),
    evaluator,
    claims: { ...guard(wires.config), ownWallets, policies: record.policies, now: record.now },
  };
}
