import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { pino } from "pino";
import type { Address, Hex, LocalAccount } from "viem";
import { generatePrivateKey, privateKeyToAddress } from "viem/accounts";
import type { Authorization } from "../../api/payments/scheme.ts";
import { freePort } from "../../scripts/embedded/ports.ts";
import type { BaseLike } from "../../test/support/base-like/base-like.ts";
import { type Answer, post, v2 } from "../../test/support/payments/requests.ts";
import { newPayer, type Signed, signPayment } from "../../test/support/payments/signing.ts";
import type { Database, Ground } from "./ground.ts";

const STOP_WITHIN_MS = 15_000;

type Built = Awaited<ReturnType<Ground["subject"]["build"]>>;

export interface ServicePlan {
  /** Default the ground's. */
  readonly base?: BaseLike;
  readonly database?: Database;
  /** Where the service finds its database, if that is somewhere else. */
  readonly databaseUrl?: string;
  /** Default false: the attack runs the jobs. */
  readonly jobs?: boolean;
  readonly env?: Readonly<Record<string, string>>;
  /** Default the chain's time, in which seconds also pass. */
  readonly now?: () => Date;
}

/** The real service in this process, and what an attack does with it. */
export interface Service extends Pick<Built, "gate" | "jobs"> {
  readonly url: string;
  readonly base: BaseLike;
  readonly database: Database;
  readonly owner: pg.Pool;
  readonly env: Readonly<Record<string, string>>;
  readonly payTo: Address;
  readonly relayer: Address;
  readonly newPayer: (atomic?: bigint) => Promise<LocalAccount>;
  /** A payment of 0.25 USDC that is valid for ten minutes, unless the fields say otherwise. */
  readonly sign: (payer: LocalAccount, fields?: Partial<Authorization>) => Promise<Signed>;
  /** Pays for `/test/basic`, or another path. */
  readonly pay: (signed: Signed, path?: string, body?: string | null) => Promise<Answer>;
  /** What so many seconds do by the database's clock. */
  readonly age: (seconds: number) => Promise<void>;
  /** One pass of the relayers' upkeep. */
  readonly tend: () => Promise<void>;
  readonly stop: () => Promise<void>;
}

let last: Promise<unknown> = Promise.resolve();
/** Payers are funded one by one, by one administrator. */
function inTurn<T>(work: () => Promise<T>): Promise<T> {
  const done = last.then(work, work);
  last = done.catch(() => undefined);
  return done;
}

const key32 = (): string => randomBytes(32).toString("base64url");

export async function openService(ground: Ground, plan: ServicePlan = {}): Promise<Service> {
  const { base = ground.base, database = await ground.newDatabase() } = plan;
  const started = performance.now();
  const now = plan.now ?? (() => new Date(base.now().getTime() + performance.now() - started));
  const own = { PORT: String(await freePort()), DATABASE_URL: plan.databaseUrl ?? database.apiUrl };
  const env: Record<string, string> = { ...environment(base), ...plan.env, ...own };
  const relayer = privateKeyToAddress(env.FACILITATOR_PRIVATE_KEY as Hex);
  await base.chain.setBalance(relayer, 10n ** 20n);
  const { gate, jobs, payTo, url, end } = await run(ground, env, { now, jobs: plan.jobs === true });
  const owner = new pg.Pool({ connectionString: database.ownerUrl, max: 2 });
  owner.on("error", () => undefined);
  const inTenMinutes = () => BigInt(Math.floor(now().getTime() / 1000)) + 600n;
  return {
    url,
    base,
    database,
    owner,
    env,
    payTo,
    relayer,
    gate,
    jobs,
    newPayer: (atomic) => inTurn(() => newPayer(base.chain, atomic)),
    sign: (payer, fields) => signPayment(payer, { to: payTo, validBefore: inTenMinutes(), ...fields }),
    pay: (signed, path = "/test/basic", body = null) => post(`${url}${path}`, v2(signed), body),
    age: (seconds) => age(owner, seconds),
    tend: async () => {
      for (const { tend } of jobs.relayers) await tend();
    },
    stop: () => {
      const ending = Promise.all([end(), owner.end()]);
      // A connection that hangs is part of an attack.
      return Promise.race([ending, sleep(STOP_WITHIN_MS, undefined, { ref: false })]).then(() => undefined);
    },
  };
}

/** The checkout's application, on its own connections and port. */
async function run({ subject }: Ground, env: Record<string, string>, by: { now: () => Date; jobs: boolean }) {
  const config = subject.parseConfig(env);
  if ("problem" in config) throw new Error(config.problem);
  const log = pino({ level: process.env.LOG_LEVEL ?? "silent" });
  const pool = subject.connect(config.databaseUrl);
  const { app, gate, jobs } = await subject.build(config, pool, { log, access: log, now: by.now });
  const servers = [subject.http.createHttpServer(app.fetch), subject.http.createHttpServer(app.fetch)];
  await subject.http.listen(servers, config.port, "localhost");
  const stopJobs = by.jobs ? subject.runJobs(jobs) : async () => undefined;
  const end = async () => {
    for (const server of servers) server.closeAllConnections();
    for (const server of servers) server.close();
    await stopJobs();
    await gate.drain();
    await pool.end();
  };
  return { gate, jobs, payTo: config.payTo, url: `http://localhost:${config.port}`, end };
}

const environment = ({ rpcUrls }: BaseLike): Record<string, string> => ({
  BASE_RPC_URL: rpcUrls["eip155:8453"],
  BASE_SEPOLIA_RPC_URL: rpcUrls["eip155:84532"],
  FACILITATOR_PRIVATE_KEY: generatePrivateKey(),
  PAY_TO_ADDRESS: privateKeyToAddress(generatePrivateKey()),
  SIGNING_KEY: key32(),
  SEALING_KEY: key32(),
  DECOY_SEED: key32(),
  ARBITER_PRIVATE_KEY: generatePrivateKey(),
  RATE_LIMIT_PER_MINUTE: "0",
});

const TIMES = `SELECT table_name, column_name FROM information_schema.columns
  WHERE table_schema = 'public' AND data_type = 'timestamp with time zone' AND table_name = ANY($1)`;

/** Moves every time in the tables of unfinished work back. */
async function age(owner: pg.Pool, seconds: number): Promise<void> {
  const { rows } = await owner.query<{ table_name: string; column_name: string }>(TIMES, [
    ["payment", "relay", "relay_upkeep"],
  ]);
  const tables = Map.groupBy(rows, ({ table_name }) => table_name);
  for (const [table, columns] of tables) {
    const set = columns.map(({ column_name: column }) => `${column} = ${column} - make_interval(secs => ${seconds})`);
    const open = table === "relay" ? " WHERE state = 'sent'" : "";
    await owner.query(`UPDATE ${table} SET ${set.join(", ")}${open}`);
  }
}
