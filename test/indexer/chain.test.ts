import pg from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { NETWORKS } from "../../api/kernel/networks.ts";
import { compareWithChain, connectChain, readHead } from "../../indexer/chain.ts";
import { type Anvil, startAnvil } from "../../scripts/embedded/anvil.ts";
import { freePort } from "../../scripts/embedded/ports.ts";
import { freshDatabase } from "../support/service/database.ts";

const network = NETWORKS["eip155:8453"];
const nowSeconds = () => Math.floor(Date.now() / 1000);
const ABSENT = `0x${"ab".repeat(32)}`;
/** The two tables as Ponder makes them, without what is not read. */
const TABLES = `
  create schema ponder_sync;
  create table ponder_sync.blocks (chain_id int8, number int8, timestamp int8, hash varchar(66), primary key (chain_id, number));
  create schema live_0123abcd_0;
  create table live_0123abcd_0._ponder_meta (key text primary key, value jsonb);
  create table live_0123abcd_0._ponder_checkpoint (chain_id int8, finalized_checkpoint varchar(75))`;

let db: pg.Pool;
/** Ten minutes old, so that its head says nothing of how far the chain really is. */
let old: Anvil;
let fresh: Anvil;

const start = async (timestamp: number) => {
  const options = ["--no-mining", "--timestamp", String(timestamp)];
  const anvil = await startAnvil({ network, port: await freePort(), options });
  await anvil.client.mine({ blocks: 10, interval: 2 });
  return anvil;
};

beforeAll(async () => {
  const { ownerUrl } = await freshDatabase();
  db = new pg.Pool({ connectionString: ownerUrl, max: 2 });
  await db.query(TABLES);
  [old, fresh] = await Promise.all([start(nowSeconds() - 600), start(nowSeconds() - 30)]);
});
afterAll(async () => {
  await Promise.all([old.process.stop(), fresh.process.stop(), db.end()]);
});
beforeEach(async () => {
  await db.query("truncate ponder_sync.blocks, live_0123abcd_0._ponder_checkpoint");
});

async function sync(block: { number: bigint; timestamp: bigint; hash: string }): Promise<void> {
  await db.query("insert into ponder_sync.blocks values (8453, $1, $2, $3)", [
    block.number,
    block.timestamp,
    block.hash,
  ]);
}

async function finalize(number: bigint, timestamp: bigint): Promise<void> {
  const digits = (value: bigint | number, width: number) => String(value).padStart(width, "0");
  const checkpoint = `${digits(timestamp, 10)}${digits(8453, 16)}${digits(number, 16)}${"9".repeat(33)}`;
  await db.query("insert into live_0123abcd_0._ponder_checkpoint values (8453, $1)", [checkpoint]);
}

async function compare({ rpcUrl }: Anvil): Promise<string> {
  const chain = connectChain(rpcUrl);
  return compareWithChain(db, chain, await readHead(chain));
}

const blockOf = ({ client }: Anvil, blockNumber: bigint) => client.getBlock({ blockNumber });

describe("the index and the node's chain", () => {
  test("an empty index fits every chain", async () => {
    expect(await compare(old)).toBe("same");
  });

  test("the same highest block is the same chain, whatever lies below", async () => {
    await sync({ ...(await blockOf(old, 3n)), hash: ABSENT });
    await sync(await blockOf(old, 8n));
    expect(await compare(old)).toBe("same");
  });

  test("another hash at the highest block is another chain", async () => {
    await sync({ ...(await blockOf(old, 8n)), hash: ABSENT });
    expect(await compare(old)).toBe("other");
  });

  test("a finalised block of another time is another chain, though no transfer was ever stored", async () => {
    const { number, timestamp } = await blockOf(old, 8n);
    await finalize(number, timestamp);
    expect(await compare(old)).toBe("same");
    expect(await compare(fresh)).toBe("other");
  });

  test("a chain with a fresh head that lacks a stored block went back", async () => {
    await sync(await blockOf(fresh, 8n));
    await sync({ number: 50n, timestamp: 0n, hash: ABSENT });
    expect(await compare(fresh)).toBe("other");
  });

  test("a node with an old head may only be late: nothing is dropped", async () => {
    await sync(await blockOf(old, 8n));
    await sync({ number: 50n, timestamp: 0n, hash: ABSENT });
    expect(await compare(old)).toBe("behind");
  });

  test("a node with an old head is of another chain when a block that it has differs", async () => {
    await sync({ ...(await blockOf(old, 8n)), hash: ABSENT });
    await sync({ number: 50n, timestamp: 0n, hash: ABSENT });
    expect(await compare(old)).toBe("other");
  });
});
