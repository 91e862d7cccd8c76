import { type Logger, pino } from "pino";
import { createMetricsApp, createSampling } from "./operations/metrics-app.ts";
import { checkChains, checkDatabase } from "./operations/probes.ts";
import { createMeter } from "./operations/prometheus.ts";
import { createBacklogReader } from "./payments/journal/upkeep-store.ts";
import { sleep } from "./platform/clock.ts";
import { parseConfig } from "./platform/config/config.ts";
import { isLoopback } from "./platform/config/values.ts";
import { connect } from "./platform/db/connection.ts";
import { checkInstallation } from "./platform/db/installation.ts";
import { createPeers, requestFacts } from "./platform/http/peers.ts";
import { createHttpServer, drain, listen } from "./platform/http/server.ts";
import { runJobs } from "./platform/jobs/run-jobs.ts";
import { eachNetwork, linkLocally, MAIN_NETWORK, type Network } from "./platform/networks.ts";
import { createService, type Service } from "./service.ts";

// Exported so that tools can load the service of any version from this file.
export { createService };

async function main(): Promise<void> {
  const config = parseConfig(process.env);
  if ("problem" in config) return fail(config.problem);
  const isLocal = (url: string): boolean => isLoopback(new URL(url).hostname);
  const localNode = (network: Network) => [config.rpcUrls[network]].flat().find(isLocal);
  if (isLocal(config.baseUrl)) linkLocally(config.baseUrl, eachNetwork(localNode));
  const log = pino({ level: config.logLevel, mixin: requestFacts });
  const buffered = pino.destination({ dest: 1, sync: false, minLength: 4_096, periodicFlush: 1_000 });
  const access = pino({ level: config.logLevel }, buffered);
  const telemetry =
    config.telemetry === null
      ? null
      : (await import("./platform/telemetry/otel.ts")).startTelemetry(config.telemetry, { log });
  const pool = connect(config.databaseUrl);
  const meter = config.metrics === null && !config.telemetry?.metrics ? null : createMeter();
  let isStopping = false;
  const build = () => createService(config, pool, { log, access, meter, isReady: () => !isStopping });
  const built = await build().catch(startProblem);
  if (typeof built === "string") return fail(built);
  let service = built;
  const problem =
    (await checkDatabase(pool)) ??
    (await checkInstallation(pool, config)) ??
    (await checkChains(service.chains, { log, end: fail }));
  if (problem !== null) return fail(problem);
  const fetch: Fetch = (...request) => service.app.fetch(...request);

  // If requests are not counted by address, connections are not either.
  const { connectionOf: clientOf } = createPeers(config.trustedProxies);
  const perAddress = config.rateLimitPerMinute === 0 ? null : { most: MOST_CONNECTIONS, clientOf };
  const servers = [createHttpServer(fetch, { perAddress }), createHttpServer(fetch, { perAddress })];
  const taken = await listenOr("PORT", servers, { port: config.port, host: config.host });
  if (taken !== null) return fail(taken);
  const sampling = createSampling({
    probes: () => service.probes,
    observed: () => service.observed(),
    backlog: createBacklogReader(pool),
    now: () => new Date(),
  });
  if (meter !== null) telemetry?.sendMetrics(async () => meter.collect(await sampling()));
  if (meter !== null && config.metrics !== null) {
    const metrics = createMetricsApp(meter.contentType, async () => meter.expose(await sampling()));
    const own = [createHttpServer(metrics.fetch, { perAddress }), createHttpServer(metrics.fetch, { perAddress })];
    const busy = await listenOr("METRICS_PORT", own, config.metrics);
    if (busy !== null) return fail(busy);
    servers.push(...own);
  }
  log.info({ url: config.baseUrl, pay_to: config.payTo }, "listening");
  if (config.costCeiling === null && !("remote" in config.facilitator)) log.warn({}, NO_CEILING);
  const run = ({ jobs, watch }: Service) => runJobs(jobs, { watch, log });
  let stopJobs = run(service);
  const drained: Promise<unknown>[] = [];
  const replace = (complete: Service) => {
    const [before, stopBefore] = [service, stopJobs];
    service = complete;
    stopJobs = run(complete);
    drained.push(stopBefore().then(before.gate.drain));
    log.info({}, "the escrow contracts have been read");
  };
  if (service.isUnread) {
    log.warn({}, "the escrow is closed until a node of Base responds: its contracts could not be read");
    void completeWhenRead(service, { build, log }).then((complete) =>
      typeof complete === "string" ? fail(complete) : replace(complete),
    );
  }

  const end = () => {
    buffered.flushSync();
    process.exit(0);
  };
  const stop = async () => {
    log.info({}, "stopping");
    isStopping = true;
    // A second signal has its default effect, which is to stop immediately.
    process.off("SIGTERM", stop).off("SIGINT", stop);
    // Interrupted payments continue after the next start, because they are in the journal.
    setTimeout(end, (config.drainSeconds + config.stopWithinSeconds) * 1000);
    // The jobs keep running meanwhile, because a request may be waiting for one of them.
    await drain(servers, config.drainSeconds * 1000);
    await stopJobs();
    await service.gate.drain();
    await Promise.all(drained);
    await telemetry?.stop();
    await pool.end();
    end();
  };
  process.on("SIGTERM", stop).on("SIGINT", stop);
}

const LOOK_EVERY_MS = 1_000;

/** Completes the service with the escrow's contracts once a node of their chain responds; or returns why it cannot. */
async function completeWhenRead(
  { chains }: Service,
  { build, log }: { readonly build: () => Promise<Service>; readonly log: Logger },
): Promise<Service | string> {
  for (;;) {
    await sleep(LOOK_EVERY_MS);
    if (chains[MAIN_NETWORK].nodes.list.every(({ state }) => state() !== "ready")) continue;
    const built = await build().catch(startProblem);
    if (typeof built === "string") return built;
    if (!built.isUnread) return (await checkChains(built.chains, { log, end: fail })) ?? built;
  }
}

type Fetch = Service["app"]["fetch"];

/** The limit per client address, one sixteenth of a process's total. */
const MOST_CONNECTIONS = 256;

const NO_CEILING =
  "settlements have no cost limit, because SETTLEMENT_COST_PERCENT, the share of its price that one may cost, is 0";

/** Returns null once the servers listen; otherwise what to do about the failure. */
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
