import { createHash, randomBytes, randomInt, randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { getConnInfo } from "@hono/node-server/conninfo";
import type pg from "pg";
import { type Logger, pino } from "pino";
import { createActivityIndex } from "./adapters/activity-index.ts";
import { createBoardReader, createTotalsReader } from "./adapters/board.ts";
import { createCertificateStore } from "./adapters/certificates.ts";
import { type ChainReader, createChain } from "./adapters/chain.ts";
import { connect } from "./adapters/database.ts";
import { createDecoys, createDemoMerchant } from "./adapters/decoys.ts";
import { createEscrowChain, readContracts } from "./adapters/escrow-chain.ts";
import { createEscrowIndex } from "./adapters/escrow-index.ts";
import { createEscrowSender, createOverdueHolds } from "./adapters/escrow-sender.ts";
import { createEscrowStore } from "./adapters/escrow-store.ts";
import { createInProcessSettler, createRemoteSettler } from "./adapters/facilitator.ts";
import { createJournal } from "./adapters/journal.ts";
import { createProofStore } from "./adapters/kept-signatures.ts";
import { createProbes } from "./adapters/probes.ts";
import { createReceipts } from "./adapters/receipts.ts";
import { createRelayer } from "./adapters/relayer.ts";
import { createSeal, type Seal } from "./adapters/seal.ts";
import { createDecoyStore, createSessionStore } from "./adapters/sessions.ts";
import { checkChains, checkDatabase } from "./adapters/startup-checks.ts";
import { createUsdcReader } from "./adapters/usdc-reader.ts";
import { createVerificationReader } from "./adapters/verification-reader.ts";
import { createApp } from "./app.ts";
import { createBoard } from "./board/service.ts";
import { catalog } from "./catalog.ts";
import { BEHAVIOUR_NETWORK } from "./certification/behaviour/routes.ts";
import { createBehaviour } from "./certification/behaviour/service.ts";
import { createDecoyRefunds } from "./certification/decoys/service.ts";
import { createOgRenderer, OG_FONTS } from "./certification/og-image.ts";
import type { CertificateStore } from "./certification/ports.ts";
import { createProofs } from "./certification/proofs/service.ts";
import { createCertification } from "./certification/service.ts";
import { type Config, parseConfig } from "./config.ts";
import { createDemo } from "./escrow/demo/service.ts";
import { ESCROW_NETWORK } from "./escrow/payment.ts";
import { createEscrow } from "./escrow/service.ts";
import { createHttpServer, listen } from "./http-server.ts";
import { runJobs } from "./jobs.ts";
import { NETWORKS, type Network } from "./kernel/networks.ts";
import { sold } from "./kernel/route.ts";
import { createGate } from "./payments/gate.ts";
import type { Settler } from "./payments/ports.ts";
import { didWeb } from "./signing/did.ts";
import { createSigner, type Signer } from "./signing/document.ts";
import { publicKeys, signingKey } from "./signing/keys.ts";

const each = <T>(make: (network: Network) => T): Record<Network, T> => ({
  "eip155:8453": make("eip155:8453"),
  "eip155:84532": make("eip155:84532"),
});

/** Everything that speaks to chains and facilitators. */
function wireChains(config: Config, pool: pg.Pool, log: Logger) {
  const chains = each((network) => createChain(network, config.rpcUrls[network]));
  if ("remote" in config.facilitator)
    return { chains, relayers: null, settler: createRemoteSettler(config.facilitator.remote) };
  const { privateKey } = config.facilitator;
  const relayers = each((network) =>
    createRelayer({ pool, log, privateKey, client: chains[network].client, chainId: NETWORKS[network].chainId }),
  );
  return {
    chains,
    relayers,
    settler: createInProcessSettler(
      each((network) => ({ client: chains[network].client, relayer: relayers[network] })),
    ),
  };
}

export interface Logs {
  readonly log: Logger;
  /** Buffered: one line a request. */
  readonly access: Logger;
}

interface BehaviourWires {
  readonly config: Config;
  readonly pool: pg.Pool;
  readonly seal: Seal;
  readonly certificates: CertificateStore;
  readonly chains: Readonly<Record<Network, ChainReader>>;
  readonly settler: Settler;
  readonly log: Logger;
  readonly now: () => Date;
}

/** The behavioural tests, and what becomes of their signatures and decoys. */
function wireBehaviour({ config, pool, seal, certificates, chains, settler, log, now }: BehaviourWires) {
  const { baseUrl } = config;
  const network = BEHAVIOUR_NETWORK;
  const decoys = createDecoys(config.decoySeed);
  const usdc = createUsdcReader(chains[network].client, NETWORKS[network]);
  const behaviour = createBehaviour({
    sessions: createSessionStore(pool),
    certificates,
    decoys,
    newToken: () => randomBytes(16).toString("base64url"),
    tokenSha256: (token) => createHash("sha256").update(token).digest(),
    toss: () => randomInt(2) === 1,
    baseUrl,
    now,
  });
  const proofs = createProofs({ proofs: createProofStore(pool, seal), certificates, usdc, log });
  const refunds = createDecoyRefunds({
    decoys: createDecoyStore(pool),
    signer: decoys,
    usdc,
    settler,
    network,
    baseUrl,
    now,
    log,
  });
  return { behaviour, upkeep: { proofs, refunds } };
}

interface EscrowWires extends Pick<BehaviourWires, "config" | "pool" | "chains" | "log" | "now"> {
  readonly signer: Signer;
}

/** The escrow, whose arbiter this service is; without a contract it knows no payment and has nothing to do. */
async function wireEscrow({ config, pool, chains, log, now, signer }: EscrowWires) {
  const network = ESCROW_NETWORK;
  const { client } = chains[network];
  const { addresses, arbiterKey } = config.escrow ?? { addresses: [], arbiterKey: null };
  const contracts = await readContracts(client, network, addresses);
  const relayer =
    arbiterKey && createRelayer({ pool, log, privateKey: arbiterKey, client, chainId: NETWORKS[network].chainId });
  const [current] = contracts;
  if (current && relayer && current.arbiter !== relayer.address.toLowerCase())
    throw new Error(
      `the arbiter of ${current.address} is ${current.arbiter}; ARBITER_PRIVATE_KEY is of ${relayer.address}`,
    );
  const index = createEscrowIndex(pool, { viewsSchema: config.indexViewsSchema });
  const chain = createEscrowChain({ client, chain: chains[network], contracts });
  const sender = createEscrowSender(relayer);
  const escrow = createEscrow({
    contracts,
    store: createEscrowStore(pool),
    chain,
    sender,
    overdue: createOverdueHolds(index, network),
    signer,
    baseUrl: config.baseUrl,
    now,
    log,
  });
  const demo = createDemo({
    contract: current ?? null,
    chain,
    sender,
    escrow,
    merchant: createDemoMerchant(config.decoySeed),
    log,
    baseUrl: config.baseUrl,
    now,
    sleep: (ms) => sleep(ms),
  });
  return { escrow, demo, contracts, relayers: relayer ? [relayer] : [] };
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
  const { escrow, demo, contracts, relayers: arbiters } = await wireEscrow({ config, pool, chains, log, now, signer });
  const routes = catalog({
    certification,
    escrow,
    demo,
    contracts,
    behaviour,
    board: createBoard({ reader: createBoardReader(pool), totals: createTotalsReader(pool), now }),
    baseUrl,
    now,
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
    jobs: { gate, journal, relayers: [...Object.values(relayers ?? {}), ...arbiters], upkeep, escrow, log },
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
