import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { getConnInfo } from "@hono/node-server/conninfo";
import type pg from "pg";
import { type Logger, pino } from "pino";
import { createActivityIndex } from "./adapters/activity-index.ts";
import { createBoardReader, createTotalsReader } from "./adapters/board.ts";
import { createCafeStore } from "./adapters/cafe.ts";
import { createCertificateStore } from "./adapters/certificates.ts";
import { connect } from "./adapters/database.ts";
import { createJournal } from "./adapters/journal.ts";
import { createProbes } from "./adapters/probes.ts";
import { createReceipts } from "./adapters/receipts.ts";
import { createSeal } from "./adapters/seal.ts";
import { checkChains, checkDatabase } from "./adapters/startup-checks.ts";
import { createVerificationReader } from "./adapters/verification-reader.ts";
import { createApp } from "./app.ts";
import { createBoard } from "./board/service.ts";
import { createCafe } from "./cafe/service.ts";
import { catalog } from "./catalog.ts";
import { createOgRenderer, OG_FONTS } from "./certification/og-image.ts";
import { createCertification } from "./certification/service.ts";
import { type Config, parseConfig } from "./config.ts";
import { createHttpServer, listen } from "./http-server.ts";
import { runJobs } from "./jobs.ts";
import { sold } from "./kernel/route.ts";
import { createGate } from "./payments/gate.ts";
import { didWeb } from "./signing/did.ts";
import { createSigner } from "./signing/document.ts";
import { flattenedJws } from "./signing/flattened-jws.ts";
import { publicKeys, signingKey } from "./signing/keys.ts";
import { createSite } from "./site/service.ts";
import { wireArbiter } from "./wiring/arbiter.ts";
import { wireBehaviour } from "./wiring/behaviour.ts";
import { wireChains } from "./wiring/chains.ts";
import { wireEscrow } from "./wiring/escrow.ts";
import { wireScore } from "./wiring/score.ts";

export interface Logs {
  readonly log: Logger;
  /** Buffered: one line a request. */
  readonly access: Logger;
}

/** The whole service on one database pool: its application, its gate and its jobs. */
export async function build(config: Config, pool: pg.Pool, logs: Logs, now: () => Date = () => new Date()) {
  const { log } = logs;
  const { chains, relayers, settler } = wireChains(config, pool, log);
  const seal = createSeal(config.sealingKey);
  const journal = createJournal(pool, seal);
  const activity = createActivityIndex(pool, { viewsSchema: config.indexViewsSchema });
  const { baseUrl, payTo } = config;
  const key = await signingKey(config.signingKey);
  const signer = createSigner(key, didWeb(baseUrl));
  const certificates = createCertificateStore(pool);
  const certification = createCertification({
    certificates,
    verifications: createVerificationReader(pool, activity),
    signer,
    baseUrl,
    now,
  });
  const { behaviour, upkeep } = wireBehaviour({ config, pool, seal, certificates, chains, settler, log, now });
  const { escrow, demo, contracts, ...wired } = await wireEscrow({ config, pool, chains, log, now, signer });
  const ownWallets = [...wired.ownWallets, ...(relayers?.["eip155:8453"] ? [relayers["eip155:8453"].address] : [])];
  const { scores, tiers } = wireScore({ config, pool, now });
  const court = wireArbiter({ config, pool, signer, now, ownWallets, escrowChain: wired.chain, tiers });
  const board = createBoard({ reader: createBoardReader(pool), totals: createTotalsReader(pool), now });
  const routes = catalog({
    certification,
    escrow,
    demo,
    contracts,
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
    signJws: flattenedJws(key, `${baseUrl}/.well-known/jwks.json`),
    publicKeys: await publicKeys(key.publicJwk, config.retiredSigningKeys),
    receipts: createReceipts(pool),
    probes: createProbes({ pool, chains, relayers, journal, position: activity.position }),
    renderOgImage: createOgRenderer(OG_FONTS.map((font) => fileURLToPath(import.meta.resolve(font)))),
  });
  const gate = createGate({
    journal,
    chains,
    settler,
    baseUrl,
    now,
    log,
    routes: new Map(sold(routes).map((route) => [route.id, route])),
    newToken: randomUUID,
    sleep: (ms) => sleep(ms),
  });
  const app = createApp({
    routes,
    gate,
    payTo,
    baseUrl,
    log,
    accessLog: logs.access,
    rateLimitPerMinute: config.rateLimitPerMinute,
    addressOf: (c) => getConnInfo(c).remote.address ?? "unknown",
  });
  return {
    app,
    gate,
    chains,
    jobs: { gate, journal, relayers: [...Object.values(relayers ?? {}), ...wired.relayers], upkeep, escrow, log },
  };
}

async function main(): Promise<void> {
  const config = parseConfig(process.env);
  if ("problem" in config) return fail(config.problem);
  const log = pino({ level: config.logLevel });
  const buffered = pino.destination({ dest: 1, sync: false, minLength: 4_096, periodicFlush: 1_000 });
  const access = pino({ level: config.logLevel }, buffered);
  const pool = connect(config.databaseUrl);
  const built = await build(config, pool, { log, access }).catch((error: unknown) => ({
    problem: startProblem(error),
  }));
  if ("problem" in built) return fail(built.problem);
  const { app, gate, chains, jobs } = built;
  const problem = (await checkDatabase(pool)) ?? (await checkChains(chains));
  if (problem !== null) return fail(problem);

  const servers = [createHttpServer(app.fetch), createHttpServer(app.fetch)];
  try {
    await listen(servers, config.port, config.host);
  } catch (error) {
    return fail(
      `Port ${config.port} cannot be used (${(error as NodeJS.ErrnoException).code ?? String(error)}); set PORT to a free one.`,
    );
  }
  log.info({ url: config.baseUrl, pay_to: config.payTo }, "listening");
  const stopJobs = runJobs(jobs);

  const stop = async () => {
    for (const server of servers) server.close();
    await stopJobs();
    await gate.drain();
    for (const server of servers) server.closeAllConnections();
    await pool.end();
    buffered.flushSync();
    process.exit(0);
  };
  process.once("SIGTERM", stop);
  process.once("SIGINT", stop);
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
