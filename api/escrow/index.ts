import { createGithubChecks, type EvidenceParts, NO_TRANSACTIONS, POLICY_VERSIONS } from "../arbiter/index.ts";
import type { PublicLog } from "../log/index.ts";
import { current, type EscrowAccount, PAYMENTS, schemesIn } from "../payments/index.ts";
import { accountAddress, openAccount } from "../platform/chain/remote-signer.ts";
import { elapsedMs, sleep, sleepUnlessAborted } from "../platform/clock.ts";
import type { Config } from "../platform/config/config.ts";
import { Problem } from "../platform/http/errors.ts";
import { isPaid, isQuoted, type Route } from "../platform/http/route.ts";
import { NETWORKS } from "../platform/networks.ts";
import { SHARES } from "../platform/relayer/places.ts";
import { createRelayer, type Relayer } from "../platform/relayer/relayer.ts";
import type { Cargo } from "../platform/relayer/sender.ts";
import { type Job, type Platform, under } from "../platform/slice.ts";
import type { Hex } from "../platform/wallet.ts";
import { createGuardedFetch } from "../platform/web/guarded-fetch/fetch.ts";
import { guard } from "../platform/web/target.ts";
import { servedBy } from "./calldata.ts";
import { withNotices } from "./carry-outcomes.ts";
import { createEscrowChain } from "./chain.ts";
import { BATCH, type ContestParts } from "./contest/answer-contests.ts";
import { contestRoutes } from "./contest/routes.ts";
import { createContestStore } from "./contest/store.ts";
import { readContracts, Unread } from "./contracts-chain.ts";
import { createDemoMerchant } from "./demo/merchant.ts";
import { demoRoutes } from "./demo/routes.ts";
import { createDemo } from "./demo/sell-espresso.ts";
import { createEscrowIndex } from "./index-store.ts";
import { ESCROW_NETWORK } from "./payment.ts";
import { escrowRoutes } from "./routes.ts";
import { createEscrowSender } from "./sender-chain.ts";
import { createEscrow as createSettling } from "./settle-deliveries.ts";
import { createEscrowStore } from "./store.ts";

export { DEMO_PRICE } from "./demo/sell-espresso.ts";
export { merchantSnippet } from "./overview.ts";
export { FEE_TEXT, feeOf, TIMEOUT_TEXT } from "./payment.ts";

/** The contracts as read, and the account that sends the arbiter's transactions. */
interface OpenContracts extends EscrowAccount {
  /** Null if it has nothing to send. */
  readonly arbiter: Relayer | null;
}

/**
 * Opens the escrow contracts that this service arbitrates. If no node can be read, there are none, and the nodes are
 * held, so that a node that comes back cannot settle payments that the contracts must decide.
 * @throws Error if a contract is not an escrow or has another arbiter
 */
export async function openContracts(platform: Platform, config: Config): Promise<OpenContracts> {
  const { client, nodes } = platform.chains[ESCROW_NETWORK];
  const { escrowAddresses: addresses } = config;
  // A node of another chain knows none of the contracts; the check of the chains reports it by name.
  if (addresses.length > 0) await nodes.check(() => undefined);
  const read = await readContracts(client, ESCROW_NETWORK, addresses).catch((error: unknown) => {
    if (error instanceof Unread) return null;
    throw error;
  });
  if (read === null) nodes.hold();
  const contracts = read ?? [];
  const arbiter = addresses.length === 0 && config.erc8004 === null ? null : createArbiterRelayer(platform, config);
  for (const { address, arbiter: named } of schemesIn(contracts).map((scheme) => current(contracts, scheme)))
    if (arbiter && named !== arbiter.address.toLowerCase())
      throw new Error(`the arbiter of ${address} is ${named}, but ARBITER_PRIVATE_KEY belongs to ${arbiter.address}`);
  return { contracts, relayer: contracts.length === 0 ? null : arbiter, arbiter, isUnread: read === null };
}

/** The cargo of the arbiter's transactions: payments, and outcomes by event. */
export const OUTCOMES: Cargo = { ...PAYMENTS, servedBy };

/** Creates the relayer of the arbiter's transactions. */
const createArbiterRelayer = (
  { pool, chains, seal, log }: Pick<Platform, "pool" | "chains" | "seal" | "log">,
  { arbiterKey, failedGasWei }: Pick<Config, "arbiterKey" | "failedGasWei">,
): Relayer =>
  createRelayer({
    pool,
    seal,
    log,
    account: openAccount(arbiterKey),
    client: chains[ESCROW_NETWORK].client,
    chainId: NETWORKS[ESCROW_NETWORK].chainId,
    counter: null,
    cargo: OUTCOMES,
    shares: SHARES.arbiter,
    mostLostWei: failedGasWei,
  });

interface EscrowNeeds extends EscrowAccount {
  readonly publicLog: PublicLog;
  /** Waits between two attempts to gather evidence; set in tests. */
  readonly wait?: EvidenceParts["wait"] | undefined;
}

/** Creates the escrow that this service arbitrates. Without a contract, it knows no payments and has nothing to do. */
export function createEscrow(platform: Platform, config: Config, needs: EscrowNeeds) {
  const {
    pool,
    chains,
    log,
    now,
    meter,
    keys: { signer },
  } = platform;
  const { contracts, relayer, publicLog, isUnread } = needs;
  const { baseUrl, escrowLimits: limits } = config;
  const network = ESCROW_NETWORK;
  const { client } = chains[network];
  const index = createEscrowIndex(pool, { viewsSchema: config.indexViewsSchema, log });
  const chain = createEscrowChain({ chain: chains[network], contracts, index });
  const arbiter = openAccount(config.arbiterKey);
  const sender = createEscrowSender(relayer && { relayer, arbiter, client, network, log, meter });
  const { store, notices } = withNotices(createEscrowStore(pool));
  const merchant = createDemoMerchant(config.decoySeed);
  const examPayer = config.exams === null ? [] : [accountAddress(config.exams.key)];
  const ownWallets = [
    ...[merchant.address, ...examPayer],
    ...contracts.flatMap((one) => [one.arbiter, one.feeRecipient]),
  ];
  const escrow = createSettling({
    ...contestParts(platform, config, needs),
    contracts,
    store,
    chain,
    sender,
    index,
    limits,
    signer,
    baseUrl,
    ownWallets: [config.payTo, ...ownWallets].map((one) => one.toLowerCase()),
    now,
    log,
  });
  const demo = createDemo({ contracts, escrow, chain, ended: notices.ended, merchant, baseUrl, elapsedMs, sleep });
  const routes = [
    ...escrowRoutes({ escrow, publicLog, contracts, limits, now, baseUrl }),
    ...contestRoutes({ escrow, publicLog, baseUrl }),
    ...demoRoutes({ demo, baseUrl }),
  ];
  const jobs: readonly Job[] = [
    {
      name: "escrow",
      everyMs: 500,
      run: () => escrow.settleDue(),
      onWork: notices.onDecided,
      idle: () => escrow.idle(),
    },
    { name: "escrow blocks", everyMs: 2_000, run: () => escrow.watchMined() },
    { name: "keep", everyMs: 10_000, run: () => escrow.refundOverdue() },
    { name: "contests", everyMs: 2_000, run: () => escrow.answerContests() },
  ];
  return {
    escrow,
    jobs: isUnread ? [] : jobs,
    routes: under("Escrow", isUnread ? routes.map(untilRead) : routes),
    ownWallets,
    /**
     * Returns the payer and payee of a payment in one of the contracts, or null. Rejects if the chain cannot be read.
     */
    async parties(payment: Hex) {
      const hold = await chain.holdById(payment);
      return hold && { payer: hold.info.payer, payee: hold.info.receiver };
    },
    /**
     * Returns the total that all contracts hold, in atomic USDC; null if the index is unavailable or the contracts are
     * unknown.
     */
    async held() {
      if (isUnread) return null;
      const balances = await Promise.all(contracts.map(({ address }) => index.balances(address)));
      if (balances.includes(null)) return null;
      return balances.reduce((sum, one) => sum + (one && one !== "absent" ? one.held : 0n), 0n);
    },
  };
}

const UNREAD =
  "No node of Base has responded since this service started, so the escrow contracts could not be read. Try again later.";
const TRY_AGAIN_SECONDS = "5";

/** Without the contracts, only recorded facts about a payment can be returned. */
function untilRead(route: Route): Route {
  if (isPaid(route)) return { ...route, terms: { ...route.terms, closed: UNREAD } };
  if (isQuoted(route) || (route.method === "GET" && route.path.endsWith("/:payment"))) return route;
  return {
    ...route,
    handle: () => {
      throw new Problem("not_available", { detail: UNREAD, headers: { "retry-after": TRY_AGAIN_SECONDS } });
    },
  };
}

/** Contests are free, so their fetches are limited in total and wait this long for their turn. */
const FETCHES = { maxFetches: BATCH, queueMs: 2_000 };

/** Returns the store of contests and the parts that judge them. */
function contestParts(
  { pool, now }: Platform,
  config: Config,
  { wait = sleepUnlessAborted }: Pick<EscrowNeeds, "wait">,
): Pick<ContestParts, "contests" | "evidence" | "claims"> {
  const userAgent = `agent-payment-trust-arbiter/1 (+${config.baseUrl}/escrow)`;
  const fetcher = createGuardedFetch({ ...guard(config), userAgent, ...FETCHES });
  const checkRuns = createGithubChecks({ ...config.github, userAgent });
  const policies = POLICY_VERSIONS;
  return {
    contests: createContestStore(pool),
    evidence: { fetcher, checkRuns, transactions: NO_TRANSACTIONS, policies, now, wait },
    claims: { ...guard(config), policies, now },
  };
}
