import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Address, parseAbiItem } from "viem";
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";
import { NETWORKS } from "../../api/platform/networks.ts";
import { type Anvil, type AnvilClient, startAnvil } from "../../scripts/embedded/anvil.ts";
import { freePort } from "../../scripts/embedded/ports.ts";
import { grantRoles, type Postgres, startPostgres } from "../../scripts/embedded/postgres.ts";
import { fundAccounts, installUsdc } from "../../scripts/embedded/usdc.ts";
import { migrate } from "../../scripts/migrate.ts";
import { deploySettlementBatch } from "../../test/support/chain/contracts.ts";
import { type Program, type ProgramOptions, startProgram, stopProgram } from "../programs.ts";
import type { Figure } from "../table.ts";

export const BASE = NETWORKS["eip155:8453"];

/** A server that sells the same product at the same price. */
export interface Side {
  readonly url: string;
  readonly payTo: Address;
  /** The account that sends its transactions. */
  readonly sender: Address;
  /** The number of responses, by status. */
  readonly answers: Map<number, number>;
}

export type Sides = Readonly<Record<"ours" | "peer", Side>>;

/** Both servers on one chain, and payers with USDC. */
export interface World {
  readonly sides: Sides;
  readonly chain: AnvilClient;
  readonly payers: readonly PrivateKeyAccount[];
  /** The database of our side. */
  readonly database: Pick<Postgres, "ownerUrl" | "apiUrl">;
  /** The processes of a side, without the node. */
  readonly processes: Readonly<Record<keyof Sides, readonly number[]>>;
}

export interface Plan {
  /** How anvil mines. */
  readonly mining: readonly string[];
  readonly payers: number;
}

/** Mines a block immediately when there are transactions, and every two seconds. */
export const AT_ONCE = ["--mixed-mining", "--block-time", "2"] as const;

export type End = () => Promise<unknown>;

/** Measures in a separate world. The last figure shows whether we were paid exactly once for each success. */
export async function inWorld(
  plan: Plan,
  use: (world: World) => Promise<readonly Figure[]>,
): Promise<readonly Figure[]> {
  const ends: End[] = [];
  try {
    const world = await open(plan, ends);
    return [...(await use(world)), await balance(world)];
  } finally {
    for (const end of ends.toReversed()) await end();
  }
}

export interface Bed {
  readonly anvil: Anvil;
  readonly payers: readonly PrivateKeyAccount[];
  readonly postgres: Postgres;
  readonly urls: Readonly<Record<string, string>>;
  readonly run: Run;
}

export async function openBed({ mining, payers: count }: Plan, payees: readonly Address[], ends: End[]): Promise<Bed> {
  const folder = mkdtempSync(join(tmpdir(), "bench-payments-"));
  chmodSync(folder, 0o711);
  ends.push(async () => rmSync(folder, { recursive: true, force: true }));
  const postgres = await startPostgres({ directory: join(folder, "postgres"), port: await freePort() });
  ends.push(postgres.stop);
  await migrate(postgres.ownerUrl);
  await grantRoles(postgres.ownerUrl);
  const start = async (network: typeof BASE, options: readonly string[]) => {
    const anvil = await startAnvil({ network, port: await freePort(), options });
    ends.push(() => anvil.process.stop());
    return anvil;
  };
  const anvil = await start(BASE, [...mining, "--slots-in-an-epoch", "3"]);
  const sepolia = await start(NETWORKS["eip155:84532"], ["--no-mining"]);
  const payers = Array.from({ length: count }, () => privateKeyToAccount(generatePrivateKey()));
  await furnish(anvil, payers, payees);
  const run: Run = async (file, env, options) => {
    const program = await startProgram(file, env, options);
    ends.push(() => stopProgram(program));
    return program;
  };
  return {
    anvil,
    payers,
    postgres,
    run,
    urls: { DATABASE_URL: postgres.apiUrl, BASE_SEPOLIA_RPC_URL: sepolia.rpcUrl },
  };
}

async function open(plan: Plan, ends: End[]): Promise<World> {
  const bed = await openBed(plan, Object.values(PAY_TO), ends);
  const peer = await startStock(bed, PAY_TO.peer, (env) => bed.run("bench/facilitators/stock.ts", env));
  const ours = await startOurs(bed, PAY_TO.ours);
  return {
    ...{ sides: { ours: ours.side, peer: peer.side }, chain: bed.anvil.client, payers: bed.payers },
    ...{ database: bed.postgres, processes: { ours: ours.processes(), peer: peer.processes() } },
  };
}

const PAY_TO = {
  ours: "0x00000000000000000000000000000000c0ffee01",
  peer: "0x00000000000000000000000000000000c0ffee02",
} as const satisfies Record<keyof Sides, Address>;
const WEI = 10n ** 22n;
const USDC = 10n ** 10n;

async function furnish({ client }: Anvil, payers: readonly PrivateKeyAccount[], payees: readonly Address[]) {
  await installUsdc(client, BASE);
  await deploySettlementBatch(client);
  // The first payment to a payee without USDC would cost more gas.
  await fundAccounts(client, BASE, { accounts: payees, usdc: 1n, wei: 0n });
  await fundAccounts(client, BASE, { accounts: payers.map(({ address }) => address), usdc: USDC, wei: 0n });
}

type Run = (file: string, env: Record<string, string>, options?: ProgramOptions) => Promise<Program>;

/** A server with its facilitator. */
export interface Seller {
  readonly side: Side;
  readonly processes: () => readonly number[];
  /** Kills the settling process without warning, and restarts it. */
  readonly crash: () => Promise<void>;
}

/** Creates a funded account, and returns its key. */
async function newSender({ client }: Anvil) {
  const key = generatePrivateKey();
  const { address: sender } = privateKeyToAccount(key);
  await client.setBalance({ address: sender, value: WEI });
  return { key, sender };
}

async function restartable(start: () => Promise<Program>) {
  let program = await start();
  const crash = async () => {
    const gone = once(program.child, "exit");
    program.child.kill("SIGKILL");
    await gone;
    program = await start();
  };
  return { pid: () => program.pid, crash };
}

export async function startOurs({ run, anvil, urls, postgres }: Bed, payTo: Address): Promise<Seller> {
  const [{ key, sender }, port] = [await newSender(anvil), String(await freePort())];
  const own = { ...ownSettings(payTo), FACILITATOR_PRIVATE_KEY: key, BASE_RPC_URL: anvil.rpcUrl, PORT: port };
  const { pid, crash } = await restartable(() => run("api/main.ts", { ...own, ...urls }, { ready: /"listening"/ }));
  const url = `http://127.0.0.1:${port}/test/basic`;
  const side = { url, payTo, sender, answers: new Map() };
  return { side, processes: () => [pid(), postgres.process.pid], crash };
}

/** Starts the stock middleware with an empty handler, and a facilitator over HTTP. */
export async function startStock(
  { run, anvil }: Bed,
  payTo: Address,
  facilitator: (env: Record<string, string>) => Promise<Program>,
): Promise<Seller> {
  const { key, sender } = await newSender(anvil);
  const [port, own] = [String(await freePort()), String(await freePort())];
  const env = { BASE_RPC_URL: anvil.rpcUrl, FACILITATOR_PRIVATE_KEY: key, CHAIN_ID: String(BASE.chainId), PORT: port };
  const { pid, crash } = await restartable(() => facilitator(env));
  const server = await run("bench/payments/peer.ts", {
    ...{ PORT: own, FACILITATOR_URL: `http://127.0.0.1:${port}`, PAY_TO_ADDRESS: payTo },
  });
  const side = { url: `http://127.0.0.1:${own}/paid`, payTo, sender, answers: new Map() };
  return { side, processes: () => [server.pid, pid()], crash };
}

const secret = () => randomBytes(32).toString("base64url");

const ownSettings = (payTo: Address) => ({
  PAY_TO_ADDRESS: payTo,
  HOST: "localhost",
  RATE_LIMIT_PER_MINUTE: "0",
  SIGNING_KEY: secret(),
  SEALING_KEY: secret(),
  DECOY_SEED: secret(),
  ARBITER_PRIVATE_KEY: `0x${randomBytes(32).toString("hex")}`,
});

const TRANSFER = parseAbiItem("event Transfer(address indexed from, address indexed to, uint256 value)");

/** One response with all logs of a long run would be too large. */
const BLOCKS_AT_ONCE = 500n;

/** Counts the transfers of USDC to an account since a block. */
export async function countTransfers(chain: AnvilClient, to: Address, since = 0n): Promise<number> {
  const filter = { address: BASE.usdc.address, event: TRANSFER, args: { to } } as const;
  const last = await chain.getBlockNumber();
  let count = 0;
  for (let fromBlock = since; fromBlock <= last; fromBlock += BLOCKS_AT_ONCE)
    count += (await chain.getLogs({ ...filter, fromBlock, toBlock: fromBlock + BLOCKS_AT_ONCE - 1n })).length;
  return count;
}

/** Returns our transfers over our successes, and prints the peer's, which may lose some. */
async function balance({ chain, sides }: World): Promise<Figure> {
  const share = async ({ payTo, answers }: Side) => {
    // One earlier transfer is not a payment.
    const transfers = (await countTransfers(chain, payTo)) - 1;
    return transfers / (answers.get(200) ?? 0);
  };
  const [ours, peer] = [await share(sides.ours), await share(sides.peer)];
  // A ratio to the peer would hide a loss.
  console.log(`the peer's transfers over its successes: ${peer}`);
  return { name: "transfers over successes", ours, atLeast: 1, atMost: 1 };
}
