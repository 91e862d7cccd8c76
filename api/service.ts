import type pg from "pg";
import type { Logger } from "pino";
import { createArbiter } from "./arbiter/index.ts";
import { POLICY_VERSIONS } from "./arbiter/policy/index.ts";
import { createBoard } from "./board/index.ts";
import { createCafe } from "./cafe/index.ts";
import { certificateEntries, createCertificates } from "./certificates/index.ts";
import { createDiscovery } from "./discovery/index.ts";
import { createEscrow, openContracts } from "./escrow/index.ts";
import { createTransparencyLog } from "./log/index.ts";
import { createOperations } from "./operations/index.ts";
import { createPayments } from "./payments/index.ts";
import type { Config } from "./platform/config/config.ts";
import { createApp } from "./platform/http/app.ts";
import type { Listed } from "./platform/http/route.ts";
import { MAIN_NETWORK } from "./platform/networks.ts";
import { createPlatform, type PlatformParts } from "./platform/platform.ts";
import { signingRoutes } from "./platform/signing/routes.ts";
import { type Job, under } from "./platform/slice.ts";
import { createPurchases } from "./purchases/index.ts";
import { createScore } from "./score/index.ts";
import { SCORE_PRICES } from "./score/request.ts";
import { createExams, createSellerRecords } from "./sellers/index.ts";
import { sellerEntries } from "./sellers/published/store.ts";
import { createSettlementStatus } from "./settlement-status/index.ts";
import { renderProblem } from "./site/error-page.ts";
import { createSite, passingCode, passingShop } from "./site/index.ts";

export interface ServiceParts extends PlatformParts {
  /** The buffered log with one line per request. */
  readonly access: Logger;
  /** How long a request waits for its settlement to appear, in milliseconds. */
  readonly patienceMs?: number | undefined;
  /** The delay of late answers in the retry safety test, in milliseconds. */
  readonly lateMs?: number | undefined;
  /** The arbiter's wait between two observations; defaults to the machine's clock. */
  readonly wait?: Parameters<typeof createArbiter>[2]["wait"];
}

export type Service = Awaited<ReturnType<typeof createService>>;

/** Creates the whole service on one database pool: its slices, the table of their routes, and their jobs. */
export async function createService(config: Config, pool: pg.Pool, parts: ServiceParts) {
  const { patienceMs, lateMs, wait, access } = parts;
  const platform = await createPlatform(config, pool, parts);
  const { keys, peers, log: logger, meter } = platform;
  const { baseUrl } = config;

  const payments = createPayments(platform, config);
  const { arbiter: relayer, ...account } = await openContracts(platform, config);
  const schemes = payments.schemes(account);
  const policies = POLICY_VERSIONS.map(({ policy }) => policy);
  const log = await createTransparencyLog(platform, config, {
    ...{ relayer, policies },
    readers: { ...certificateEntries, ...sellerEntries },
  });
  const { publicLog } = log;
  const escrow = createEscrow(platform, config, { ...account, publicLog, wait });
  const facilitator = payments.relayers?.[MAIN_NETWORK].address;
  const ownWallets = [...escrow.ownWallets, ...(facilitator === undefined ? [] : [facilitator])];
  const sellers = createSellerRecords(platform, config, { publicLog });
  const exams = createExams(platform, config, { payments, ownWallets, passingShop: passingShop(baseUrl) });
  const certificates = await createCertificates(platform, config, {
    ...{ payments, publicLog, relayer, lateMs },
    shared: sellers.shared,
    passingCode: passingCode(baseUrl),
    scorePrice: SCORE_PRICES.one,
  });
  const score = createScore(platform, config, { ...account, payeeUrl: sellers.payeeUrl });
  const arbiter = await createArbiter(platform, config, {
    ...{ publicLog, ownWallets, wait },
    tiers: score.tiers,
    deals: escrow,
  });
  const settlementStatus = createSettlementStatus(platform, config, { heard: certificates.heard });
  const cafe = createCafe(platform, config);
  const purchases = createPurchases(platform, config, { schemes, offerReceipt: payments.offerReceipt });
  const board = createBoard(platform, config);
  const discovery = createDiscovery(platform, config);
  const site = await createSite(platform, config, { ...arbiter, ...board, held: escrow.held });
  const operations = createOperations(platform, config, {
    ...{ payments, arbiter: relayer },
    logFacts: log.facts,
    position: certificates.activity.position,
  });

  const exists = {
    certificate: async (id: string) =>
      (await certificates.certification.certificate(id)) !== null ||
      ((await sellers.sellers.exam(id))?.placed ?? null) !== null,
    verdict: async (id: string) => (await arbiter.arbiter.get(id)) !== null,
    evaluation: async (payment: string) => (await escrow.escrow.evaluation(payment as `0x${string}`)) !== null,
  };
  // The only table. Mounting, 402 terms, and every published list derive from it.
  const table = () => routes;
  const routes: readonly Listed[] = [
    ...site.home(table),
    ...operations.routes,
    ...payments.routes(table),
    ...purchases.routes(table),
    ...discovery.documents(table),
    ...site.guides(table),
    // Before the records, whose paths they share.
    ...log.proofs(exists),
    ...certificates.routes,
    ...sellers.routes,
    ...certificates.tests,
    ...exams.routes,
    ...score.routes,
    ...arbiter.routes,
    ...escrow.routes,
    ...settlementStatus.routes,
    ...cafe.routes,
    ...certificates.inspect(table),
    ...board.routes,
    ...log.routes,
    ...discovery.mcp(table),
    ...under("Keys", signingRoutes(keys.published, config)),
  ];
  const { isUnread } = account;
  const { gate, handlerOf, jobs: paying } = payments.sell(routes, { schemes, patienceMs, isUnread });
  const jobs: readonly Job[] = [paying, operations, escrow, certificates, exams, log, board].flatMap((one) =>
    "jobs" in one ? one.jobs : one,
  );
  const app = createApp({
    ...{ routes, handlerOf, pool, peers, meter },
    renderProblem: (problem, sold) => renderProblem(problem, sold, baseUrl),
    log: logger,
    accessLog: access,
    rateLimitPerMinute: config.rateLimitPerMinute,
  });
  const { probes, observed, watch } = operations;
  return {
    app,
    gate,
    jobs,
    watch,
    probes,
    observed,
    chains: platform.chains,
    escrow: escrow.escrow,
    upkeep: certificates.upkeep,
    /**
     * Whether the escrow contracts could not be read, and Base's nodes are held. The service is then built again once
     * one responds.
     */
    isUnread,
  };
}
