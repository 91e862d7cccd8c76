import { randomBytes } from "node:crypto";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Address, parseAbiItem } from "viem";
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";
import { NETWORKS } from "../../api/kernel/networks.ts";
import { type Anvil, type AnvilClient, startAnvil } from "../../scripts/embedded/anvil.ts";
import { freePort } from "../../scripts/embedded/ports.ts";
import { grantApiRole, type Postgres, startPostgres } from "../../scripts/embedded/postgres.ts";
import { fundAccounts, installUsdc } from "../../scripts/embedded/usdc.ts";
import { migrate } from "../../scripts/migrate.ts";
import { deploySettlementBatch } from "../../test/support/chain/settlement-batch.ts";
import { type Program, startProgram, stopProgram } from "../programs.ts";

export const BASE = NETWORKS["eip155:8453"];

/** A server that sells the same for the same. */
export interface Side {
  readonly url: string;
  readonly payTo: Address;
  /** The account that sends its transactions. */
  readonly sender: Address;
  /** How many payments it answered, by status. */
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
  /** Process ids, by what runs there. */
  readonly processes: Readonly<Record<"API" | "PostgreSQL" | "node" | "peer" | "facilitator", number>>;
  /** Starts another process of ours, on the same database and chain. */
  readonly startOurs: (settings: Readonly<Record<string, string>>) => Promise<Program & Pick<Side, "url">>;
}

export interface Plan {
  /** How anvil mines. */
  readonly mining: readonly string[];
  readonly payers: number;
  /** Settings of ours that are not the default. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Where each side finds the chain, if not at its own URL. */
  readonly nodes?: (rpcUrl: string) => Promise<Readonly<Record<keyof Sides, string>>>;
}

/** As blocks come when there is no time to wait for them: at once when there are transactions, and every two seconds. */
export const AT_ONCE = ["--mixed-mining", "--block-time", "2"] as const;

type End = () => Promise<unknown>;

/**
 * Runs a part of the benchmark in a world of its own, and balances the books at its end.
 * Returns whether its goals are reached and nothing was lost or paid twice.
 */
export async function inWorld(plan: Plan, use: (world: World) => Promise<boolean>): Promise<boolean> {
  const ends: End[] = [];
  try {
    const world = await open(plan, ends);
    const isReached = await use(world);
    return (await isBalanced(world)) && isReached;
  } finally {
    for (const end of ends.toReversed()) await end();
  }
}

async function open({ mining, payers: count, settings = {}, nodes }: Plan, ends: End[]): Promise<World> {
  const folder = mkdtempSync(join(tmpdir(), "bench-payments-"));
  chmodSync(folder, 0o711);
  ends.push(async () => rmSync(folder, { recursive: true, force: true }));
  const postgres = await startPostgres({ directory: join(folder, "postgres"), port: await freePort() });
  ends.push(postgres.stop);
  await migrate(postgres.ownerUrl);
  await grantApiRole(postgres.ownerUrl);
  const start = async (network: typeof BASE, options: readonly string[]) => {
    const anvil = await startAnvil({ network, port: await freePort(), options });
    ends.push(() => anvil.process.stop());
    return anvil;
  };
  const anvil = await start(BASE, [...mining, "--slots-in-an-epoch", "3"]);
  const sepolia = await start(NETWORKS["eip155:84532"], ["--no-mining"]);
  const payers = Array.from({ length: count }, () => privateKeyToAccount(generatePrivateKey()));
  await furnish(anvil, payers);
  const rpc = (await nodes?.(anvil.rpcUrl)) ?? { ours: anvil.rpcUrl, peer: anvil.rpcUrl };
  const run: Run = async (file, env, ready) => {
    const program = await startProgram(file, env, { ready });
    ends.push(() => stopProgram(program));
    return program;
  };
  const peer = await startPeer(run, anvil, rpc.peer);
  const key = generatePrivateKey();
  const { address: sender } = privateKeyToAccount(key);
  await anvil.client.setBalance({ address: sender, value: WEI });
  const own = { ...ownSettings(), ...settings, FACILITATOR_PRIVATE_KEY: key, BASE_RPC_URL: rpc.ours };
  const urls = { DATABASE_URL: postgres.apiUrl, BASE_SEPOLIA_RPC_URL: sepolia.rpcUrl };
  const startOurs: World["startOurs"] = async (more) => {
    const port = String(await freePort());
    const program = await run("api/main.ts", { ...own, ...urls, ...more, PORT: port }, /"listening"/);
    return { ...program, url: `http://127.0.0.1:${port}/test/basic` };
  };
  const { child, url } = await startOurs({});
  const processes = {
    ...peer.processes,
    API: child.pid ?? 0,
    PostgreSQL: postgres.process.pid,
    node: anvil.process.pid,
  };
  const ours = { url, payTo: PAY_TO.ours, sender, answers: new Map() };
  return { sides: { ours, peer: peer.side }, chain: anvil.client, payers, database: postgres, processes, startOurs };
}

const PAY_TO = {
  ours: "0x00000000000000000000000000000000c0ffee01",
  peer: "0x00000000000000000000000000000000c0ffee02",
} as const satisfies Record<keyof Sides, Address>;
const WEI = 10n ** 22n;
const USDC = 10n ** 10n;

async function furnish({ client }: Anvil, payers: readonly PrivateKeyAccount[]): Promise<void> {
  await installUsdc(client, BASE);
  await deploySettlementBatch(client);
  // A payee without USDC costs its first payer more gas.
  const payees = Object.values(PAY_TO);
  await fundAccounts(client, BASE, { accounts: payees, usdc: 1n, wei: 0n });
  await fundAccounts(client, BASE, { accounts: payers.map(({ address }) => address), usdc: USDC, wei: 0n });
}

type Run = (file: string, env: Record<string, string>, ready?: RegExp) => Promise<Program>;

async function startPeer(run: Run, { client }: Anvil, rpcUrl: string) {
  const key = generatePrivateKey();
  const { address: sender } = privateKeyToAccount(key);
  await client.setBalance({ address: sender, value: WEI });
  const [port, own] = [String(await freePort()), String(await freePort())];
  const facilitator = await run("bench/payments/facilitator.ts", {
    ...{ PORT: port, BASE_RPC_URL: rpcUrl, FACILITATOR_PRIVATE_KEY: key },
  });
  const server = await run("bench/payments/peer.ts", {
    ...{ PORT: own, FACILITATOR_URL: `http://127.0.0.1:${port}`, PAY_TO_ADDRESS: PAY_TO.peer },
  });
  const side: Side = { url: `http://127.0.0.1:${own}/paid`, payTo: PAY_TO.peer, sender, answers: new Map() };
  return { side, processes: { peer: server.child.pid ?? 0, facilitator: facilitator.child.pid ?? 0 } };
}

const secret = () => randomBytes(32).toString("base64url");

const ownSettings = () => ({
  PAY_TO_ADDRESS: PAY_TO.ours,
  HOST: "localhost",
  RATE_LIMIT_PER_MINUTE: "0",
  SIGNING_KEY: secret(),
  SEALING_KEY: secret(),
  DECOY_SEED: secret(),
  ARBITER_PRIVATE_KEY: `0x${randomBytes(32).toString("hex")}`,
});

const TRANSFER = parseAbiItem("event Transfer(address indexed from, address indexed to, uint256 value)");

/** An answer with all logs of a long run would be too large. */
const BLOCKS_AT_ONCE = 500n;

async function countTransfers(chain: AnvilClient, to: Address): Promise<number> {
  const filter = { address: BASE.usdc.address, event: TRANSFER, args: { to } } as const;
  const last = await chain.getBlockNumber();
  let count = 0;
  for (let fromBlock = 0n; fromBlock <= last; fromBlock += BLOCKS_AT_ONCE)
    count += (await chain.getLogs({ ...filter, fromBlock, toBlock: fromBlock + BLOCKS_AT_ONCE - 1n })).length;
  return count;
}

/** Whether we were paid once for each success, and for nothing else. */
async function isBalanced({ chain, sides }: World): Promise<boolean> {
  for (const name of ["peer", "ours"] as const) {
    const { payTo, answers } = sides[name];
    // One transfer came before: it is not a payment.
    const transfers = (await countTransfers(chain, payTo)) - 1;
    const others = [...answers].filter(([status]) => status !== 200).map(([status, count]) => `, ${count} × ${status}`);
    const isEqual = transfers === (answers.get(200) ?? 0);
    console.log(
      `  ${name}: ${transfers} transfers, ${answers.get(200) ?? 0} successes${others.join("")}${isEqual ? "" : ": DIFFERENT"}`,
    );
    if (name === "ours" && !isEqual) return false;
  }
  return true;
}
