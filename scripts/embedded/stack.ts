import { join } from "node:path";
import { MAIN_NETWORK, NETWORKS, type NetworkFacts } from "../../api/kernel/networks.ts";
import { isReady } from "../../indexer/deployment.ts";
import { escrowIndexPrefix } from "../../indexer/escrows/choose-deployment.ts";
import { ponderSchemas } from "../../indexer/schemas.ts";
import { migrate } from "../migrate.ts";
import { packagesProblem } from "../packages.ts";
import { anvilClient } from "./anvil.ts";
import { startChain } from "./chain.ts";
import type { DataDirectory } from "./data-directory.ts";
import {
  deployedEscrow,
  deployedEvaluator,
  deployedOperator,
  deploymentTargets,
  hasEarlierVersion,
  isDeployed,
} from "./deployments.ts";
import { type GuardedProcess, startGuarded } from "./guarded-process.ts";
import { arbiterAddress, examAddress, facilitatorAddress, type Keys, payToAddress } from "./keys.ts";
import { localWitness } from "./local-witness.ts";
import { takeBackLostBlocks } from "./lost-blocks.ts";
import { freePort } from "./ports.ts";
import { grantApiRole, type Postgres, startPostgres, withClient } from "./postgres.ts";
import { apiPlan, deploymentPlan, indexerPlan, type ServiceParts, VIEWS_SCHEMA } from "./services.ts";
import type { StartSettings } from "./settings.ts";
import { type SupervisedService, supervise } from "./supervise.ts";
import { fundAccounts } from "./usdc.ts";

export interface StackParts {
  readonly settings: StartSettings;
  readonly keys: Keys;
  readonly directory: DataDirectory;
  /** Reports that a part is up, or in trouble. */
  readonly tell: (line: string) => void;
  /** A part the others depend on has ended. */
  readonly onLoss: (reason: string) => void;
}

export interface Stack {
  /** Starts everything; settles once every part answers. */
  readonly start: () => Promise<void>;
  /** Ends what was started, the API first and PostgreSQL last. */
  readonly stop: () => Promise<void>;
}

const SENDER_WEI = 100n * 10n ** 18n;
/** At each start, for exams of sellers. */
const EXAM_USDC = 50_000_000n;
const READY_WITHIN_MS = 120_000;
const ESCROW_INDEX = `${escrowIndexPrefix(VIEWS_SCHEMA)}_`;

/** Stages of parts that end together; the first stage ends first. */
const STAGES = ["deployment", "api", "witness", "indexer", "chains", "postgres"] as const;
type Stops = Map<(typeof STAGES)[number], (() => Promise<void>)[]>;

/** The whole service on this machine: PostgreSQL, both chains with their contracts, the indexer and the API. */
export function createStack(parts: StackParts): Stack {
  const stops: Stops = new Map(STAGES.map((stage) => [stage, []]));
  const start = async () => {
    const { settings } = parts;
    const packages = packagesProblem();
    const chains = Promise.all([
      startLocalChain(parts, stops, { network: NETWORKS["eip155:8453"], port: settings.baseRpcPort }),
      startLocalChain(parts, stops, { network: NETWORKS["eip155:84532"], port: settings.baseSepoliaRpcPort }),
    ]);
    // Before the services: for a few seconds Hardhat needs as much memory as they do.
    const deployed = chains.then(() => deployMissing(parts, stops));
    const [postgres, contracts] = await Promise.all([startDatabase(parts, stops), deployed]);
    await migrate(postgres.ownerUrl);
    await grantApiRole(postgres.ownerUrl);
    const targets = deploymentTargets({ base: settings.baseRpcPort, baseSepolia: settings.baseSepoliaRpcPort });
    await takeBackLostBlocks(postgres.ownerUrl, targets, [facilitatorAddress(parts.keys), arbiterAddress(parts.keys)]);
    parts.tell("The database schema is up to date");
    const problem = await packages;
    if (problem !== null) parts.tell(problem);
    await startServices({ ...parts, ...postgres, ...contracts, logs: parts.directory.logs }, parts, stops);
  };
  const stop = async () => {
    for (const stage of STAGES) await Promise.all((stops.get(stage) ?? []).map((end) => end()));
  };
  return { start, stop };
}

async function startDatabase({ settings, directory, tell, onLoss }: StackParts, stops: Stops): Promise<Postgres> {
  const logFile = join(directory.logs, "postgres.log");
  const home = join(settings.dataDirectory, "postgres");
  const postgres = await startPostgres({ directory: home, port: settings.postgresPort, logFile });
  stops.get("postgres")?.push(postgres.stop);
  directory.remember("postgres", postgres.process.pid);
  watch("PostgreSQL", postgres.process, onLoss);
  tell("PostgreSQL is up");
  return postgres;
}

async function startLocalChain(
  parts: StackParts,
  stops: Stops,
  { network, port }: { network: NetworkFacts; port: number },
): Promise<void> {
  const { settings, directory, keys, tell, onLoss } = parts;
  const logFile = join(directory.logs, `chain-${network.key}.log`);
  const home = join(settings.dataDirectory, "chains", network.key);
  const chain = await startChain({ network, port, directory: home, logFile });
  stops.get("chains")?.push(chain.stop);
  directory.remember(network.key, chain.process.pid);
  watch(`The local chain ${network.key}`, chain.process, onLoss);
  for (const address of [facilitatorAddress(keys), arbiterAddress(keys)])
    await chain.client.setBalance({ address, value: SENDER_WEI });
  if (network.id === MAIN_NETWORK)
    await fundAccounts(chain.client, network, { accounts: [examAddress(keys)], usdc: EXAM_USDC, wei: 0n });
  tell(`The local chain ${network.key} is up, with USDC`);
}

function watch(name: string, process: GuardedProcess, onLoss: (reason: string) => void): void {
  process.ended.then((outcome) => onLoss(`${name} exited (${outcome}). ${process.lastOutput().trim()}`));
}

type Contracts = Required<Pick<ServiceParts, "escrows" | "evaluator">>;

/** Deploys what is missing; returns what the services need to know of the local Base. */
async function deployMissing({ settings, keys, directory, tell }: StackParts, stops: Stops): Promise<Contracts> {
  const targets = deploymentTargets({ base: settings.baseRpcPort, baseSepolia: settings.baseSepoliaRpcPort });
  const folder = join(settings.dataDirectory, "ignition");
  const roles = { arbiter: arbiterAddress(keys), feeRecipient: payToAddress(keys) };
  const [base] = targets;
  const contracts = async (): Promise<Contracts | null> => {
    const [escrow, operator, evaluator] = await Promise.all([
      deployedEscrow(folder, base, roles),
      deployedOperator(folder, base, roles),
      deployedEvaluator(folder, base, roles),
    ]);
    return escrow && operator && evaluator && { escrows: [escrow, operator], evaluator };
  };
  const found = await Promise.all(targets.map((target) => isDeployed(folder, target, roles)));
  const known = found.includes(false) ? null : await contracts();
  if (known !== null) return known;
  const replaced = await Promise.all(targets.map((target) => hasEarlierVersion(folder, target)));
  if (replaced.includes(true))
    tell(
      "The escrow of an earlier version is replaced. What it holds stays there until anyone calls its refund, 30 minutes after the hold",
    );
  const deployment = await startGuarded(deploymentPlan({ settings, keys, logs: directory.logs }));
  directory.remember("deployment", deployment.pid);
  stops.get("deployment")?.push(() => deployment.stop(1_000));
  const outcome = await deployment.ended;
  if (outcome !== 0)
    throw new Error(`The contracts could not be deployed (${outcome}).\n${deployment.lastOutput().trim()}`);
  const deployed = await contracts();
  if (deployed === null) throw new Error("The contracts were deployed but cannot be found.");
  tell("The contracts are deployed");
  return deployed;
}

const LABELS = { indexer: "indexer", witness: "witness", api: "API" } as const;

async function startServices(services: ServiceParts, parts: StackParts, stops: Stops): Promise<void> {
  const { settings, directory, tell } = parts;
  const url = `http://localhost:${settings.port}`;
  const { rpcUrl, network } = deploymentTargets({
    base: settings.baseRpcPort,
    baseSepolia: settings.baseSepoliaRpcPort,
  })[0];
  const next = Number(await anvilClient(rpcUrl, network).getBlockNumber()) + 1;
  const begin = async (
    name: keyof typeof LABELS,
    plan: ReturnType<typeof apiPlan>,
    isReady: () => Promise<boolean>,
  ) => {
    const onStart = (pid: number) => directory.remember(name, pid);
    const service = await supervise({
      name: LABELS[name],
      plan,
      isReady,
      onStart,
      onTrouble: tell,
      readyWithinMs: READY_WITHIN_MS,
    });
    stops.get(name)?.push(service.stop);
    return service;
  };
  const began = Date.now();
  const indexed = async () =>
    (await areIndexesReady(services.ownerUrl, { began, block: next })) && (await hasIndexed(url, next));
  const indexer = await begin("indexer", indexerPlan(services, await freePort()), indexed);
  const { plan, url: witnessUrl, setting: witness } = await localWitness(services);
  await begin("witness", plan, () => fetch(witnessUrl).then(() => true));
  const api = await begin("api", apiPlan({ ...services, witness }), () => isOk(`${url}/health`));
  const announce = (service: SupervisedService, line: string) => service.ready.then(() => tell(line));
  await Promise.all([announce(api, "The API is up"), announce(indexer, "The indexer has caught up")]);
}

const isOk = async (url: string): Promise<boolean> => (await fetch(url, { signal: AbortSignal.timeout(5_000) })).ok;

/**
 * Whether both indexes, of the payments and of the escrows, are from this run and have a block from it: the last run's rows
 * are there at once, and may cover blocks the chain has lost.
 */
const areIndexesReady = (ownerUrl: string, { began, block }: { began: number; block: number }): Promise<boolean> =>
  withClient(ownerUrl, async (client) => {
    const ready = new Set<string>();
    for (const schema of await ponderSchemas(client)) {
      if (!(await isReady(client, { schema }, began))) continue;
      const { rowCount } = await client.query(`select from "${schema}".position where block >= $1`, [block]);
      if (rowCount === 1) ready.add(schema.startsWith(ESCROW_INDEX) ? "escrows" : "payments");
    }
    return ready.size === 2;
  });

/** Whether the index contains a block from this run. */
async function hasIndexed(baseUrl: string, block: number): Promise<boolean> {
  const headers = { accept: "application/json" };
  const response = await fetch(`${baseUrl}/status`, { headers, signal: AbortSignal.timeout(5_000) });
  const { indexer }: { indexer?: { ok?: boolean; ready?: boolean; block?: number | null } } = JSON.parse(
    await response.text(),
  );
  return indexer?.ok === true && indexer.ready === true && (indexer.block ?? 0) >= block;
}
