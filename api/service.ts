import { randomUUID } from "node:crypto";
import { fileURLToPath } from "node:url";
import type pg from "pg";
import type { Logger } from "pino";
import type { EvidenceParts } from "./arbiter/gather-evidence.ts";
import { createVerdictStore } from "./arbiter/store.ts";
import { wireArbiter } from "./arbiter/wiring.ts";
import { createBoard } from "./board/read-board.ts";
import { createBoardReader, createTotalsReader } from "./board/store.ts";
import { createCafe } from "./cafe/index.ts";
import { createCafeStore } from "./cafe/store.ts";
import { catalog } from "./catalog.ts";
import { createPublicationStore } from "./certificates/agent-registries/store.ts";
import { wirePublishing } from "./certificates/agent-registries/wiring.ts";
import { createCertification } from "./certificates/certify.ts";
import { createOgRenderer, OG_FONTS } from "./certificates/og-image.ts";
import { wireBehaviour } from "./certificates/sessions/wiring.ts";
import { createCertificateStore, createVerificationReader } from "./certificates/store.ts";
import { wireEscrow } from "./escrow/wiring.ts";
import { wireLog, wirePublicLog } from "./log/wiring.ts";
import { wireMeter, wireOperations } from "./operations/wiring.ts";
import { PATIENCE_MS } from "./payments/commands.ts";
import { createGate } from "./payments/gate.ts";
import { createJournal } from "./payments/journal/journal-store.ts";
import { createReceipts } from "./payments/journal/upkeep-store.ts";
import { wireChains, wireSchemes } from "./payments/wiring.ts";
import { elapsedMs, every, sleep } from "./platform/clock.ts";
import type { Config } from "./platform/config/config.ts";
import { isAway } from "./platform/db/connection.ts";
import { createPrunings } from "./platform/db/prunings.ts";
import { createSeal } from "./platform/db/seal.ts";
import { createApp } from "./platform/http/app.ts";
import { createPeers, inRequest } from "./platform/http/peers.ts";
import { sold } from "./platform/http/route.ts";
import { createActivityIndex } from "./platform/index/activity.ts";
import type { Meter } from "./platform/metrics/meter.ts";
import { MAIN_NETWORK } from "./platform/networks.ts";
import { createRelayPruning } from "./platform/relayer/store.ts";
import { wireSigning } from "./platform/signing/wiring.ts";
import { wirePurchases } from "./purchases/wiring.ts";
import { SCORE_PRICES } from "./score/request.ts";
import { wireScore } from "./score/wiring.ts";
import { wireSellers } from "./sellers/published/wiring.ts";
import { wireExams } from "./sellers/wiring.ts";
import { wireSettlements } from "./settlement-status/wiring.ts";
import { createSite } from "./site/home-page.ts";
import { wirePackages } from "./site/packages/tarballs.ts";

/** The service's logs, meter and clock. */
export interface BuildParts {
  readonly log: Logger;
  /** Buffered: one line per request. */
  readonly access: Logger;
  readonly meter?: Meter | null;
  /** Defaults to the machine's clock. */
  readonly now?: (() => Date) | undefined;
  /** How long a request waits until its settlement shows, in milliseconds. */
  readonly patienceMs?: number | undefined;
  /** How late a late answer of the retry safety test comes, in milliseconds. */
  readonly lateMs?: number | undefined;
  /** The arbiter's wait between two looks; defaults to the machine's clock. */
  readonly wait?: EvidenceParts["wait"] | undefined;
}

/** The whole service on one database pool: its application, gate and jobs. */
export async function build(config: Config, pool: pg.Pool, parts: BuildParts) {
  const { log, meter = null, now = () => new Date(), patienceMs = PATIENCE_MS } = parts;
  const counted = wireMeter(meter);
  const { chains, relayers, settler, simulators } = wireChains(config, { pool, log, meter });
  const seal = createSeal(config.sealingKey);
  const journal = counted.journal(createJournal(pool, seal));
  const activity = createActivityIndex(pool, { viewsSchema: config.indexViewsSchema });
  const { baseUrl, payTo } = config;
  const { signer, signJws, offerReceipt, publicKeys } = await wireSigning(config);
  const certificates = counted.certificates(createCertificateStore(pool));
  const publications = createPublicationStore(pool);
  const certification = createCertification({
    certificates,
    verifications: createVerificationReader(pool, activity),
    publications,
    signer,
    baseUrl,
    scorePrice: SCORE_PRICES.one,
    now,
  });
  const { behaviour, retry, upkeep } = wireBehaviour({
    config,
    pool,
    seal,
    certificates,
    publications,
    chains,
    settler,
    simulators,
    log,
    now,
    lateMs: parts.lateMs,
  });
  const { escrow, demo, contracts, ...wired } = await wireEscrow({
    config,
    pool,
    chains,
    log,
    now,
    signer,
    meter,
    wait: parts.wait,
  });
  const { relayer: arbiter, ...publishing } = await wirePublishing({
    config,
    pool,
    chains,
    log,
    now,
    signer,
    store: publications,
    certificates,
    relayer: wired.relayer,
  });
  const ownWallets = [...wired.ownWallets, ...(relayers?.[MAIN_NETWORK] ? [relayers[MAIN_NETWORK].address] : [])];
  const { scores, tiers } = wireScore({ config, contracts, pool, now, log });
  const court = await wireArbiter({
    config,
    store: counted.verdicts(createVerdictStore(pool)),
    signer,
    now,
    ownWallets,
    escrowChain: wired.chain,
    client: chains[MAIN_NETWORK].client,
    tiers,
    wait: parts.wait,
  });
  const {
    store: logStore,
    generation,
    integrate,
    checkpoints,
    published,
    facts: logFacts,
  } = await wireLog({
    config,
    pool,
    signer,
    publicKeys,
    chain: chains[MAIN_NETWORK],
    relayer: arbiter,
    now,
    log,
  });
  const operations = wireOperations({
    config,
    pool,
    chains,
    facilitators: relayers,
    arbiters: arbiter === null ? [] : [arbiter],
    journal,
    logFacts,
    position: activity.position,
  });
  const peers = createPeers(config.trustedProxies);
  const board = createBoard({ reader: createBoardReader(pool), totals: createTotalsReader(pool), now });
  const schemes = wireSchemes({
    chains,
    simulators,
    settler,
    contracts,
    arbiter: wired.relayer,
    ceiling: config.costCeiling,
    factories: config.walletFactories,
    sending: { policy: config.batches, log, meter },
  });
  const examining = wireExams({ config, pool, chains, settler, simulators, ownWallets, now, log });
  const publicLog = wirePublicLog({ generation, store: logStore, checkpoints });
  const routes = catalog({
    publicLog,
    certification,
    ordering: publishing.ordering,
    escrow,
    demo,
    contracts,
    limits: config.escrowLimits,
    ...court,
    scores,
    cafe: createCafe({ store: createCafeStore(pool), now }),
    behaviour,
    ...wireSettlements({ config, pool, chains, log, now, peers, signer, heard: [retry.hear] }),
    retry,
    exams: examining.exams,
    peers,
    board,
    site: createSite({ board, arbiter: court.arbiter, held: wired.held, now }),
    baseUrl,
    now,
    payTo,
    facilitator: "remote" in config.facilitator ? config.facilitator.remote : baseUrl,
    securityContact: config.securityContact,
    signJws,
    publicKeys,
    receipts: createReceipts(pool),
    purchases: wirePurchases({ config, pool, chains, schemes, log, now }),
    offerReceipt,
    probes: operations.probes,
    tarballs: await wirePackages(log),
    isAway,
    toolFailed: (error) => log.error({ err: error }, "a tool failed"),
    ...wireSellers({ pool, publicLog, signer, baseUrl, now }),
    renderOgImage: createOgRenderer(OG_FONTS.map((font) => fileURLToPath(import.meta.resolve(font)))),
  });
  const gate = createGate({
    journal,
    chains,
    schemes,
    baseUrl,
    now,
    log,
    routes: new Map(sold(routes).map((route) => [route.id, route])),
    newToken: randomUUID,
    sleep,
    patienceMs,
    every,
    elapsedMs,
  });
  const app = createApp({
    routes,
    gate,
    schemes,
    payTo,
    baseUrl,
    offerReceipt,
    now,
    log,
    isAway,
    accessLog: parts.access,
    rateLimitPerMinute: config.rateLimitPerMinute,
    peers,
    inRequest,
    elapsedMs,
    meter,
  });
  const { probes, relayers: tended, watch } = operations;
  return {
    app,
    gate,
    chains,
    probes,
    jobs: {
      gate,
      journal,
      prunings: [createRelayPruning(pool), ...createPrunings(pool)],
      relayers: tended,
      upkeep,
      escrow,
      publish: publishing.publish,
      exams: examining.runner,
      watchExams: examining.watch,
      integrate,
      published,
      watch,
      log,
    },
  };
}
