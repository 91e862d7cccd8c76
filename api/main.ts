import { randomUUID } from "node:crypto";
import { fileURLToPath } from "node:url";
import type pg from "pg";
import { type Logger, pino } from "pino";
import { createActivityIndex } from "./adapters/index/activity.ts";
import { viewsOf } from "./adapters/index/views.ts";
import { createBacklogReader } from "./adapters/postgres/backlog.ts";
import { createBoardReader, createTotalsReader } from "./adapters/postgres/board-reader.ts";
import { createBookPruning } from "./adapters/postgres/book-pruning.ts";
import { createCafeStore } from "./adapters/postgres/cafe-store.ts";
import { createCertificateStore } from "./adapters/postgres/certificate-store.ts";
import { connect, isAway } from "./adapters/postgres/connection.ts";
import { createJournal } from "./adapters/postgres/journal.ts";
import { createLookupPruning } from "./adapters/postgres/lookup-pruning.ts";
import { createPublicationStore } from "./adapters/postgres/publication-store.ts";
import { createReceipts } from "./adapters/postgres/receipts.ts";
import { createRelayPruning } from "./adapters/postgres/relay-pruning.ts";
import { createSeal } from "./adapters/postgres/seal.ts";
import { createVerdictStore } from "./adapters/postgres/verdict-store.ts";
import { createVerificationReader } from "./adapters/postgres/verification-reader.ts";
import { elapsedMs, every, sleep } from "./adapters/process/clock.ts";
import { createHttpServer, drain, listen } from "./adapters/process/http-server.ts";
import { createPeers } from "./adapters/process/peers.ts";
import { createMeter } from "./adapters/process/prometheus.ts";
import { inRequest, requestFacts } from "./adapters/process/request-id.ts";
import { checkChains, checkDatabase } from "./adapters/process/startup-checks.ts";
import { createApp } from "./app.ts";
import { createBoard } from "./board/read-board.ts";
import { createCafe } from "./cafe/serve-order.ts";
import { catalog } from "./catalog.ts";
import { createCertification } from "./certification/certify.ts";
import { createOgRenderer, OG_FONTS } from "./certification/og-image.ts";
import { type Config, parseConfig } from "./config.ts";
import { MAIN_NETWORK } from "./kernel/networks.ts";
import { sold } from "./kernel/route.ts";
import type { Meter } from "./operations/meter.ts";
import { createMetricsApp } from "./operations/metrics-app.ts";
import { PATIENCE_MS } from "./payments/commands.ts";
import { createGate } from "./payments/gate.ts";
import { SCORE_PRICES } from "./score/products.ts";
import { createSite } from "./site/count-figures.ts";
import { wireArbiter } from "./wiring/arbiter.ts";
import { wireBehaviour } from "./wiring/behaviour.ts";
import { wireChains } from "./wiring/chains.ts";
import { wirePublishing } from "./wiring/erc8004.ts";
import { wireEscrow } from "./wiring/escrow.ts";
import { runJobs } from "./wiring/jobs.ts";
import { wireMeter, wireOperations } from "./wiring/operations.ts";
import { wirePackages } from "./wiring/packages.ts";
import { wireSchemes } from "./wiring/payments.ts";
import { wireScore } from "./wiring/score.ts";
import { wireSigning } from "./wiring/signing.ts";

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
}

/** The whole service on one database pool: its application, gate and jobs. */
export async function build(config: Config, pool: pg.Pool, parts: BuildParts) {
  const { log, meter = null, now = () => new Date(), patienceMs = PATIENCE_MS } = parts;
  const counted = wireMeter(meter);
  const { chains, relayers, settler, simulators } = wireChains(config, { pool, log, meter });
  const seal = createSeal(config.sealingKey);
  const journal = counted.journal(createJournal(pool, seal));
  const activity = createActivityIndex(pool, viewsOf(config));
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
  const { behaviour, upkeep } = wireBehaviour({
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
  });
  const { escrow, demo, contracts, ...wired } = await wireEscrow({ config, pool, chains, log, now, signer, meter });
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
  const { scores, tiers } = wireScore({ config, pool, now, log });
  const court = await wireArbiter({
    config,
    store: counted.verdicts(createVerdictStore(pool)),
    signer,
    now,
    ownWallets,
    escrowChain: wired.chain,
    client: chains[MAIN_NETWORK].client,
    tiers,
  });
  const operations = wireOperations({
    config,
    pool,
    chains,
    facilitators: relayers,
    arbiters: arbiter === null ? [] : [arbiter],
    journal,
    position: activity.position,
  });
  const board = createBoard({ reader: createBoardReader(pool), totals: createTotalsReader(pool), now });
  const routes = catalog({
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
    probes: operations.probes,
    tarballs: await wirePackages(log),
    isAway,
    toolFailed: (error) => log.error({ err: error }, "a tool failed"),
    renderOgImage: createOgRenderer(OG_FONTS.map((font) => fileURLToPath(import.meta.resolve(font)))),
  });
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
    peers: createPeers(config.trustedProxies),
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
      prunings: [createRelayPruning(pool), createBookPruning(pool), createLookupPruning(pool)],
      relayers: tended,
      upkeep,
      escrow,
      publish: publishing.publish,
      watch,
      log,
    },
  };
}

async function main(): Promise<void> {
  const config = parseConfig(process.env);
  if ("problem" in config) return fail(config.problem);
  const log = pino({ level: config.logLevel, mixin: requestFacts });
  const buffered = pino.destination({ dest: 1, sync: false, minLength: 4_096, periodicFlush: 1_000 });
  const access = pino({ level: config.logLevel }, buffered);
  const pool = connect(config.databaseUrl);
  const meter = config.metrics === null ? null : createMeter();
  const built = await build(config, pool, { log, access, meter }).catch((error: unknown) => ({
    problem: startProblem(error),
  }));
  if ("problem" in built) return fail(built.problem);
  const { app, gate, chains, probes, jobs } = built;
  const problem = (await checkDatabase(pool)) ?? (await checkChains(chains));
  if (problem !== null) return fail(problem);

  const servers = [createHttpServer(app.fetch), createHttpServer(app.fetch)];
  const taken = await listenOr("PORT", servers, { port: config.port, host: config.host });
  if (taken !== null) return fail(taken);
  if (meter !== null && config.metrics !== null) {
    const backlog = createBacklogReader(pool);
    const metrics = createMetricsApp({ probes, backlog, exposition: meter, now: () => new Date() });
    const own = [createHttpServer(metrics.fetch), createHttpServer(metrics.fetch)];
    const busy = await listenOr("METRICS_PORT", own, config.metrics);
    if (busy !== null) return fail(busy);
    servers.push(...own);
  }
  log.info({ url: config.baseUrl, pay_to: config.payTo }, "listening");
  if (config.costCeiling === null && !("remote" in config.facilitator)) log.warn({}, NO_CEILING);
  const stopJobs = runJobs(jobs);

  const end = () => {
    buffered.flushSync();
    process.exit(0);
  };
  const stop = async () => {
    log.info({}, "stopping");
    // A second signal means hurry: it has its default effect.
    process.off("SIGTERM", stop).off("SIGINT", stop);
    // Whatever is cut off continues after the next start: it is in the journal.
    setTimeout(end, config.stopWithinSeconds * 1000);
    // The jobs keep running meanwhile, because a request may be waiting for one of them.
    await drain(servers);
    await stopJobs();
    await gate.drain();
    await pool.end();
    end();
  };
  process.on("SIGTERM", stop).on("SIGINT", stop);
}

const NO_CEILING =
  "settlements are paid for whatever gas costs: SETTLEMENT_COST_PERCENT and ETH_PRICE_USD set the share of a price that one may cost";

/** Null once the servers listen; else what to do about the failure. */
async function listenOr(
  variable: string,
  servers: Parameters<typeof listen>[0],
  { port, host }: { readonly port: number; readonly host: string | undefined },
): Promise<string | null> {
  try {
    await listen(servers, port, host);
    return null;
  } catch (error) {
    return `Port ${port} cannot be used (${(error as NodeJS.ErrnoException).code ?? String(error)}); set ${variable} to a free port.`;
  }
}

const startProblem = (error: unknown): string =>
  `The service cannot start: ${error instanceof Error ? error.message.split("\n")[0] : String(error)}`;

function fail(problem: string): void {
  console.error(problem);
  process.exitCode = 1;
  // Open pools and sockets must not keep a process alive that cannot serve.
  setImmediate(() => process.exit(1));
}

if (import.meta.main) await main();
