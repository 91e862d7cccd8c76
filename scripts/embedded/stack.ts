import { join } from "node:path";
import { NETWORKS, type NetworkFacts } from "../../api/platform/networks.ts";
import { isReady, shownSchema } from "../../indexer/views.ts";
import { migrate } from "../migrate.ts";
import { packagesProblem } from "../packages.ts";
import { anvilClient } from "./anvil.ts";
import { startChain } from "./chain.ts";
import type { DataDirectory } from "./data-directory.ts";
import { deploymentTargets, localContracts } from "./deployments.ts";
import { type GuardedProcess, type ProcessPlan, startGuarded } from "./guarded-process.ts";
import { arbiterAddress, examAddress, facilitatorAddress, type Keys } from "./keys.ts";
import { localWitness } from "./local-witness.ts";
import { freePort } from "./ports.ts";
import { grantRoles, type Postgres, startPostgres, withClient } from "./postgres.ts";
import { apiPlan, deploymentPlan, indexerPlan, VIEWS_SCHEMA } from "./services.ts";
import type { StartSettings } from "./settings.ts";
import { type SupervisedService, supervise } from "./supervise.ts";
import { fundAccounts } from "./usdc.ts";

export interface StackParts {
  readonly settings: StartSettings;
  readonly keys: Keys;
  readonly directory: DataDirectory;
  /** Whether the data directory has the state of an earlier start. */
  readonly isResumed: boolean;
  /** Reports that a component is up or has failed. */
  readonly tell: (line: string) => void;
  /** Called when a component that others depend on has ended. */
  readonly onLoss: (reason: string) => void;
}

export interface Stack {
  /** Starts everything. Settles once every component responds. */
  readonly start: () => Promise<void>;
  /** Stops the components, the API first, and records whether the next start can resume. */
  readonly stop: () => Promise<void>;
}

const SENDER_WEI = 100n * 10n ** 18n;
/** The balance for exams of sellers at each start. */
const EXAM_USDC = 50_000_000n;
const READY_WITHIN_MS = 120_000;
/** Enough for a last checkpoint on a slow disk. */
const POSTGRES_STOPS_WITHIN_MS = 60_000;

/** A chain or the database. */
interface Store {
  /** Returns false if it could not store all of its data. */
  readonly stop: () => Promise<boolean>;
}

type Urls = Pick<Postgres, "ownerUrl" | "apiUrl" | "indexerUrl">;

/** Starts a program that uses the stores. Ends it if the stack is stopping. */
type Begin = <T extends { readonly stop: () => Promise<void> }>(program: Promise<T>) => Promise<T>;

/** The whole service on this machine: PostgreSQL, both chains with their contracts, the indexer and the API. */
export function createStack(parts: StackParts): Stack {
  const stores: Promise<Store>[] = [];
  const programs: { readonly stop: () => Promise<void> }[] = [];
  let isComplete = parts.isResumed;
  let isStopping = false;
  let starting = Promise.resolve();
  const begin: Begin = async (program) => {
    const begun = await program;
    programs.unshift(begun);
    if (isStopping) await begun.stop();
    return begun;
  };
  const startAll = async () => {
    const packages = packagesProblem();
    const postgres = startDatabase(parts);
    const chains = Object.values(NETWORKS).map((network) => startLocalChain(parts, network));
    stores.push(postgres, ...chains);
    // Before the services, because Hardhat needs as much memory as they do for a few seconds.
    const deployed = Promise.all(chains).then(() => (parts.isResumed ? undefined : deploy(parts, begin)));
    const [urls] = await Promise.all([postgres, deployed]);
    await prepareDatabase(parts, urls.ownerUrl);
    isComplete = true;
    const problem = await packages;
    if (problem !== null) parts.tell(problem);
    if (!isStopping) await startServices(parts, urls, begin);
  };
  const start = () => {
    starting = startAll();
    return starting;
  };
  const stop = async () => {
    isStopping = true;
    for (const program of programs) await program.stop();
    await starting.catch(() => {});
    const ends = (await Promise.allSettled(stores)).map(async (one) => one.status === "fulfilled" && one.value.stop());
    const areStored = (await Promise.all(ends)).every(Boolean);
    if (areStored && isComplete) parts.directory.close();
  };
  return { start, stop };
}

async function startDatabase({ settings, directory, tell, onLoss }: StackParts): Promise<Store & Urls> {
  const logFile = join(directory.logs, "postgres.log");
  const home = join(directory.path, "postgres");
  const postgres = await startPostgres({ directory: home, port: settings.postgresPort, logFile });
  watch("PostgreSQL", postgres.process, onLoss);
  tell("PostgreSQL is up");
  const stop = async () => {
    await postgres.process.stop(POSTGRES_STOPS_WITHIN_MS);
    return (await postgres.process.ended) === 0;
  };
  const { ownerUrl, apiUrl, indexerUrl } = postgres;
  return { ownerUrl, apiUrl, indexerUrl, stop };
}

async function startLocalChain(parts: StackParts, network: NetworkFacts): Promise<Store> {
  const { settings, directory, keys, tell, onLoss } = parts;
  const port = settings.rpcPorts[network.id];
  const logFile = join(directory.logs, `chain-${network.key}.log`);
  const chain = await startChain({ network, port, directory: join(directory.path, "chains", network.key), logFile });
  watch(`The local chain ${network.key}`, chain.process, onLoss);
  for (const address of [facilitatorAddress(keys), arbiterAddress(keys)])
    await chain.client.setBalance({ address, value: SENDER_WEI });
  await fundAccounts(chain.client, network, { accounts: [examAddress(keys)], usdc: EXAM_USDC, wei: 0n });
  tell(`The local chain ${network.key} is up, with USDC`);
  return chain;
}

function watch(name: string, process: GuardedProcess, onLoss: (reason: string) => void): void {
  process.ended.then((outcome) => onLoss(`${name} exited (${outcome}). ${process.lastOutput().trim()}`));
}

async function deploy({ settings, keys, directory, tell }: StackParts, begin: Begin): Promise<void> {
  const deployment = await begin(startGuarded(deploymentPlan({ settings, keys, logs: directory.logs })));
  const outcome = await deployment.ended;
  if (outcome !== 0)
    throw new Error(`The contracts could not be deployed (${outcome}).\n${deployment.lastOutput().trim()}`);
  tell("The contracts are deployed");
}

async function prepareDatabase({ tell }: StackParts, ownerUrl: string): Promise<void> {
  await migrate(ownerUrl);
  await grantRoles(ownerUrl);
  tell("The database schema is up to date");
}

async function startServices({ settings, keys, directory, tell }: StackParts, urls: Urls, begin: Begin): Promise<void> {
  const url = `http://localhost:${settings.port}`;
  const [base] = deploymentTargets({
    base: settings.rpcPorts["eip155:8453"],
    baseSepolia: settings.rpcPorts["eip155:84532"],
  });
  const { escrow, operator, evaluator } = localContracts(join(directory.path, "ignition"), base);
  const services = { settings, keys, ...urls, logs: directory.logs, escrows: [escrow, operator], evaluator };
  const run = (name: string, plan: ProcessPlan, isReady: () => Promise<boolean>) =>
    begin(supervise({ name, plan, isReady, onTrouble: tell, readyWithinMs: READY_WITHIN_MS }));
  const next = Number(await anvilClient(base.rpcUrl, base.network).getBlockNumber()) + 1;
  const began = Date.now();
  const indexed = async () =>
    (await isIndexReady(urls.ownerUrl, { began, block: next })) && (await hasIndexed(url, next));
  const indexer = await run("indexer", indexerPlan(services, await freePort()), indexed);
  const { plan, url: witnessUrl, setting: witness } = await localWitness(services);
  await run("witness", plan, () => fetch(witnessUrl).then(() => true));
  const api = await run("API", apiPlan({ ...services, witness }), () => isOk(`${url}/health`));
  const announce = (service: SupervisedService, line: string) => service.ready.then(() => tell(line));
  await Promise.all([announce(api, "The API is up"), announce(indexer, "The indexer has caught up")]);
}

const isOk = async (url: string): Promise<boolean> => (await fetch(url, { signal: AbortSignal.timeout(5_000) })).ok;

/** Returns whether the served index is from this run and has a block from it. */
const isIndexReady = (ownerUrl: string, { began, block }: { began: number; block: number }): Promise<boolean> =>
  withClient(ownerUrl, async (client) => {
    const schema = await shownSchema(client, VIEWS_SCHEMA);
    if (schema === null || !(await isReady(client, schema, began))) return false;
    const { rowCount } = await client.query(`select from "${schema}".position where block >= $1`, [block]);
    return rowCount === 1;
  });

/** Returns whether the index contains a block from this run. */
async function hasIndexed(baseUrl: string, block: number): Promise<boolean> {
  const headers = { accept: "application/json" };
  const response = await fetch(`${baseUrl}/status`, { headers, signal: AbortSignal.timeout(5_000) });
  const { indexer }: { indexer?: { ok?: boolean; ready?: boolean; block?: number | null } } = JSON.parse(
    await response.text(),
  );
  return indexer?.ok === true && indexer.ready === true && (indexer.block ?? 0) >= block;
}
