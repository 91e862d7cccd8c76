import { createServer } from "node:http";
import { type AddressInfo, createServer as createTcpServer, connect as openSocket, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { privateKeyToAccount } from "viem/accounts";
import { startGuarded } from "../../../scripts/embedded/guarded-process.ts";
import { freePort } from "../../../scripts/embedded/ports.ts";
import { waitUntil } from "../../../scripts/embedded/wait-until.ts";
import { startTestChain, type TestChain } from "../chain/chain.ts";
import { holdToItsWord, letGo } from "../openapi/answers.ts";
import { PAY_TO } from "../payments/pay.ts";
import { freshDatabase, type TestDatabase } from "./database.ts";
import { bareEnvironment } from "./environment.ts";
import { ARBITER_KEY } from "./keys.ts";

const MAIN = fileURLToPath(new URL("../../../api/main.ts", import.meta.url));
const RELAYER_KEY = `0x${"6f".repeat(32)}` as const;
const START_LIMIT_MS = 60_000;
const START_ATTEMPTS = 3;
const BLOCKED_LIMIT_MS = 30_000;

export interface ApiProcessPlan {
  readonly database: TestDatabase;
  readonly baseRpcUrl: string;
  readonly baseSepoliaRpcUrl: string;
  /** More variables of its environment, or others in place of these. */
  readonly env?: Readonly<Record<string, string>>;
  /** Where to keep all that it prints. */
  readonly logFile?: string;
}

/** The API as it runs in production: a process of its own. It never outlives the test that started it. */
export interface ApiProcess {
  readonly url: string;
  readonly pid: number;
  /** The end of what it printed. */
  readonly output: () => string;
  /** Its exit code, or the signal that ended it. */
  readonly ended: Promise<number | string>;
  /** SIGKILL: nothing is finished, nothing is told. */
  readonly kill: () => Promise<void>;
  /** It sleeps without knowing, until `thaw`. */
  readonly freeze: () => void;
  readonly thaw: () => void;
  readonly stop: () => Promise<void>;
}

/** Starts `api/main.ts` and waits until it listens. Processes of one database share their keys. */
export async function startApiProcess(plan: ApiProcessPlan): Promise<ApiProcess> {
  for (let attempt = 1; ; attempt++) {
    const port = await freePort();
    const { logFile } = plan;
    const child = await startGuarded({
      command: process.execPath,
      args: [MAIN],
      env: environment(plan, port),
      ...(logFile === undefined ? {} : { logFile }),
    });
    const listening = () => child.lastOutput().includes('"msg":"listening"');
    await waitUntil(() => listening() || !child.running(), START_LIMIT_MS);
    const signal = (name: NodeJS.Signals) => {
      if (child.running()) process.kill(child.pid, name);
    };
    const kill = async () => {
      signal("SIGKILL");
      await child.ended;
    };
    if (child.running() && listening()) {
      const url = `http://localhost:${port}`;
      holdToItsWord(url);
      child.ended.then(() => letGo(url));
      return {
        url,
        pid: child.pid,
        output: child.lastOutput,
        ended: child.ended,
        kill,
        freeze: () => signal("SIGSTOP"),
        thaw: () => signal("SIGCONT"),
        stop: () => child.stop(),
      };
    }
    await kill();
    // Another program may take a port that was free a moment ago.
    if (attempt === START_ATTEMPTS || !/cannot be used \(EADDRINUSE\)/.test(child.lastOutput()))
      throw new Error(`The API did not start. ${child.lastOutput().trim()}`);
  }
}

const environment = ({ database, baseRpcUrl, baseSepoliaRpcUrl, env }: ApiProcessPlan, port: number) => ({
  ...bareEnvironment(),
  PORT: String(port),
  HOST: "localhost",
  DATABASE_URL: database.apiUrl,
  BASE_RPC_URL: baseRpcUrl,
  BASE_SEPOLIA_RPC_URL: baseSepoliaRpcUrl,
  FACILITATOR_PRIVATE_KEY: RELAYER_KEY,
  PAY_TO_ADDRESS: PAY_TO,
  SIGNING_KEY: Buffer.alloc(32, 1).toString("base64url"),
  SEALING_KEY: Buffer.alloc(32, 2).toString("base64url"),
  DECOY_SEED: Buffer.alloc(32, 3).toString("base64url"),
  ARBITER_PRIVATE_KEY: ARBITER_KEY,
  RATE_LIMIT_PER_MINUTE: "0",
  ...env,
});

/** The in-process facilitator of every process. */
export const SHARED_RELAYER = privateKeyToAccount(RELAYER_KEY).address;

export const fundRelayer = (chain: TestChain): Promise<void> => chain.setBalance(SHARED_RELAYER, 10n ** 20n);

/** Real chains and a real database under any number of API processes. */
export interface ApiStage {
  readonly chain: TestChain;
  readonly database: TestDatabase;
  /** The owner's connection, for looking; it never holds a lock. */
  readonly owner: pg.Client;
  /** Starts an API process that reads the chain through the node. */
  readonly start: (node: Pick<HoldingNode, "url">, env?: ApiProcessPlan["env"]) => Promise<ApiProcess>;
  /** What a lease of 30 seconds does by itself. Live leases end too: nothing but speed rests on them. */
  readonly endLeases: () => Promise<void>;
  /** Until a statement that begins like this waits for a lock. */
  readonly untilBlocked: (statement: string) => Promise<void>;
  readonly stop: () => Promise<void>;
}

const END_LEASES = "UPDATE payment SET lease_until = '-infinity' WHERE lease_until > now()";
const BLOCKED =
  "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE $1";

export async function startApiStage(): Promise<ApiStage> {
  const [chain, sepolia, database] = await Promise.all([
    startTestChain(),
    startTestChain({ network: "eip155:84532" }),
    freshDatabase(),
  ]);
  await fundRelayer(chain);
  const owner = new pg.Client({ connectionString: database.ownerUrl });
  owner.on("error", () => undefined);
  await owner.connect();
  return {
    chain,
    database,
    owner,
    start: (node, env = {}) =>
      startApiProcess({ database, baseRpcUrl: node.url, baseSepoliaRpcUrl: sepolia.rpcUrl, env }),
    endLeases: async () => void (await owner.query(END_LEASES)),
    async untilBlocked(statement) {
      const blocked = async () => (await owner.query(BLOCKED, [`${statement}%`])).rowCount === 1;
      if (!(await waitUntil(blocked, BLOCKED_LIMIT_MS, 10)))
        throw new Error(`nothing waits for a lock in ${statement}`);
    },
    async stop() {
      await owner.end();
      await Promise.all([chain.stop(), sepolia.stop()]);
    },
  };
}

/** A call that has arrived and is neither answered nor passed on. */
export interface Hold {
  /** Resolves once the call is here. */
  readonly reached: Promise<void>;
  /** Passes it on, unless its caller has gone. */
  readonly release: () => void;
}

/** A JSON-RPC node in front of a chain that holds calls back, so that a test knows where their caller stands. */
export interface HoldingNode {
  readonly url: string;
  /** Requests that have arrived so far. */
  readonly calls: () => number;
  /** Holds the next call of the method whose parameters have these hex digits; later ones pass. */
  readonly hold: (method: string, digits: string) => Hold;
  readonly stop: () => void;
}

interface Trap {
  readonly method: string;
  readonly digits: string;
  readonly reach: () => void;
  readonly released: Promise<void>;
}

export async function startHoldingNode(chain: TestChain): Promise<HoldingNode> {
  const traps = new Set<Trap>();
  let calls = 0;
  const server = createServer(async (incoming, outgoing) => {
    try {
      const asked = await text(incoming);
      calls++;
      const trap = [...traps].find((candidate) => catches(candidate, asked));
      if (trap !== undefined) {
        traps.delete(trap);
        trap.reach();
        await trap.released;
      }
      if (outgoing.destroyed) return;
      const headers = { "content-type": "application/json" };
      const response = await fetch(chain.rpcUrl, { method: "POST", headers, body: asked });
      outgoing.writeHead(response.status, headers).end(await response.text());
    } catch {
      // The caller was killed, or the chain is going away.
      outgoing.destroy();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls: () => calls,
    hold(method, digits) {
      const reached = Promise.withResolvers<void>();
      const released = Promise.withResolvers<void>();
      const plain = digits.replace(/^0x/, "").toLowerCase();
      traps.add({ method, digits: plain, reach: reached.resolve, released: released.promise });
      return { reached: reached.promise, release: released.resolve };
    },
    stop() {
      server.closeAllConnections();
      server.close();
    },
  };
}

function catches({ method, digits }: Trap, asked: string): boolean {
  const calls = [JSON.parse(asked)].flat() as { method: string; params?: unknown }[];
  return calls.some((call) => call.method === method && JSON.stringify(call.params).toLowerCase().includes(digits));
}

/** A way to the database that can lose an acknowledgement. */
export interface DatabaseLink {
  readonly url: string;
  /** The next transaction that stores a certificate is committed, and the connection breaks before anyone hears of it. */
  readonly loseNextCommit: () => void;
  readonly stop: () => void;
}

export async function startDatabaseLink(url: string): Promise<DatabaseLink> {
  const { hostname, port } = new URL(url);
  const sockets = new Set<Socket>();
  let lose = false;
  const server = createTcpServer((client) => {
    const upstream = openSocket(Number(port || 5432), hostname);
    const cut = () => [client, upstream].map((socket) => socket.destroy());
    for (const socket of [client, upstream]) sockets.add(socket.on("error", cut).on("close", cut));
    let storing = false;
    let cutting = false;
    client.on("data", (sent) => {
      const message = sent.toString("latin1");
      if (lose && message.includes("INSERT INTO certificate")) storing = true;
      if (storing && message.includes("COMMIT")) cutting = true;
      upstream.write(sent);
    });
    upstream.on("data", (answered) => {
      if (!cutting) return client.write(answered);
      lose = false;
      cut();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const own = new URL(url);
  own.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url: own.href,
    loseNextCommit: () => {
      lose = true;
    },
    stop() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

/** Numbers from 0 to 1 that the seed decides (mulberry32). */
export function chance(seed: number): () => number {
  let a = seed | 0;
  return () => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}
