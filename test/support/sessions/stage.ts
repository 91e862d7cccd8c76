import pg from "pg";
import type { Address, LocalAccount } from "viem";
import { USDC_ABI } from "../../../scripts/embedded/usdc.ts";
import { startTestChain, type TestChain, type TestChainPlan } from "../chain/chain.ts";
import { eventually } from "../eventually.ts";
import { broadcast } from "../payments/on-chain.ts";
import { newPayer, signPayment } from "../payments/signing.ts";
import type { TestDatabase } from "../service/database.ts";
import { startService, type TestService, type TestServicePlan } from "../service/service.ts";

/** The database and the chain of sessions and payments. */
export interface Ground {
  readonly chain: TestChain;
  /** The owner's connections. */
  readonly owner: pg.Pool;
}

export interface Stage extends Ground {
  readonly service: TestService;
  readonly stop: () => Promise<void>;
}

export async function startStage(
  plan: Omit<TestServicePlan, "chain"> = {},
  chainPlan: TestChainPlan = {},
): Promise<Stage> {
  const chain = await startTestChain(chainPlan);
  const service = await startService({ chain, ...plan });
  const owner = ownerOf(service.database);
  return {
    chain,
    service,
    owner,
    async stop() {
      await owner.end();
      await service.stop();
      await chain.stop();
    },
  };
}

export function ownerOf(database: TestDatabase): pg.Pool {
  const owner = new pg.Pool({ connectionString: database.ownerUrl, max: 4 });
  return owner.on("error", () => undefined);
}

/** Every row of every table as text, with hex and base64 also decoded. */
export async function everyRow({ owner }: Pick<Ground, "owner">): Promise<readonly string[]> {
  const tables = await owner.query<{ read: string }>(
    `SELECT format('SELECT t::text AS row FROM %I.%I t', schemaname, tablename) AS read FROM pg_tables
     WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`,
  );
  const rows: string[] = [];
  for (const { read } of tables.rows)
    rows.push(...(await owner.query<{ row: string }>(read)).rows.map(({ row }) => row));
  return rows.map((row) => {
    const decoded = [
      ...(row.match(/\\x[0-9a-f]{64,}/g) ?? []).map((word) => Buffer.from(word.slice(2), "hex")),
      ...(row.match(/[A-Za-z0-9+/=_-]{64,}/g) ?? []).map((word) => Buffer.from(word, "base64")),
    ];
    return [row, ...decoded.map((bytes) => bytes.toString("latin1"))].join("\n");
  });
}

/** Waits until this number of statements wait for a row. */
export const untilWaiting = async ({ owner }: Pick<Ground, "owner">, wanted: number): Promise<void> => {
  const text = `SELECT 1 FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock' AND wait_event IN ('tuple', 'transactionid')`;
  await eventually(async () => (await owner.query(text)).rowCount, wanted);
};

/** The time for services with observed decoys: the machine's plus what the test has added. */
export interface Clock {
  readonly now: () => Date;
  readonly add: (seconds: number) => void;
}

export function newClock(): Clock {
  let added = 0;
  return {
    now: () => new Date(Date.now() + added * 1000),
    add: (seconds) => {
      added += seconds;
    },
  };
}

/** Sends USDC to a decoy in the sender's own transaction, which is mined but not final. */
export async function pay(chain: TestChain, sender: LocalAccount, { to, value }: { to: Address; value: bigint }) {
  const validBefore = (await chain.client.getBlock()).timestamp + 600n;
  return broadcast(chain, await signPayment(sender, { to, value, validBefore }));
}

/** An account that has just sent all its USDC to a decoy. */
export async function decoyPayer(chain: TestChain, to: Address, value: bigint): Promise<LocalAccount> {
  const sender = await newPayer(chain, value);
  await pay(chain, sender, { to, value });
  return sender;
}

/** The number of transactions that the relayer has ever sent. */
export const sentBy = async (owner: pg.Pool): Promise<number> =>
  Number((await owner.query("SELECT count(*) FROM relay")).rows[0].count);

export const giveBack = ({ upkeep }: TestService): Promise<number> => upkeep.refunds.giveBack();

/** Transfers of more than zero from a decoy on the chain. */
export async function refundsFrom(chain: TestChain, decoy: Address) {
  const event = USDC_ABI.find((item) => item.type === "event" && item.name === "Transfer");
  const logs = await chain.client.getLogs({
    address: chain.network.usdc.address,
    event: event as Extract<typeof event, { name: "Transfer" }>,
    args: { from: decoy },
    fromBlock: 0n,
  });
  return logs.filter(({ args }) => args.value !== 0n);
}
