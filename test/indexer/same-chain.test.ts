import pg from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { NETWORKS } from "../../api/platform/networks.ts";
import { connectChain, readHead } from "../../indexer/chain.ts";
import { whyNotSameChain } from "../../indexer/same-chain.ts";
import { type Anvil, startAnvil } from "../../scripts/embedded/anvil.ts";
import { freePort } from "../../scripts/embedded/ports.ts";
import { type FaultyNode, startFaultyNode } from "../support/chain/nodes.ts";
import { askNode, type Fault, refuse, replyTo } from "../support/chain/rpc.ts";
import { freshDatabase } from "../support/service/database.ts";

const network = NETWORKS["eip155:8453"];
const ABSENT = `0x${"ab".repeat(32)}`;
/** Ponder's two tables, without the columns that are not read. */
const TABLES = `
  create schema ponder_sync;
  create table ponder_sync.blocks (chain_id int8, number int8, timestamp int8, hash varchar(66), primary key (chain_id, number));
  create schema live_0123abcd_0;
  create table live_0123abcd_0._ponder_meta (key text primary key, value jsonb);
  create table live_0123abcd_0._ponder_checkpoint (chain_id int8, finalized_checkpoint varchar(75))`;

let db: pg.Pool;
/** Two chains that differ from their first block on. */
let ours: Anvil;
let another: Anvil;
/** Serves our chain unless a test changes it. */
let node: FaultyNode;

const start = async (timestamp: number) => {
  const options = ["--no-mining", "--timestamp", String(timestamp)];
  const anvil = await startAnvil({ network, port: await freePort(), options });
  await anvil.client.mine({ blocks: 1_010, interval: 2 });
  return anvil;
};

beforeAll(async () => {
  const { ownerUrl } = await freshDatabase();
  db = new pg.Pool({ connectionString: ownerUrl, max: 2 });
  await db.query(TABLES);
  [ours, another] = await Promise.all([start(1_700_000_000), start(1_700_000_100)]);
  node = await startFaultyNode(ours);
});
afterAll(async () => {
  node.stop();
  await Promise.all([ours.process.stop(), another.process.stop(), db.end()]);
});
beforeEach(async () => {
  node.become(null);
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

const blockOf = ({ client }: Anvil, blockNumber: bigint) => client.getBlock({ blockNumber });

/** An index of our chain that has synced to block 1,000 and is final at block 990. */
async function indexOurs(): Promise<void> {
  await sync(await blockOf(ours, 1_000n));
  await finalize(990n, (await blockOf(ours, 990n)).timestamp);
}

/** The launcher's comparison of the index with the node's chain. */
const compare = async (url = node.url) => whyNotSameChain(db, connectChain(url), await readHead([url]));

const UNKNOWN = "the node does not return any block that the index has stored";
const isForNumber = (params: readonly unknown[] | undefined) => /^0x/.test(String(params?.[0]));

/** Returns null for every block by number, and the true newest block. */
const forgetful: Fault = async (call, pass) =>
  call.method === "eth_getBlockByNumber" && isForNumber(call.params) ? replyTo(call, null) : pass(call);
const fromAnother: Fault = async (call) => askNode(another.rpcUrl)(call);

describe("an index of the node's chain", () => {
  test("An empty index matches every chain", async () => {
    expect(await compare(another.rpcUrl)).toBeNull();
  });

  test("An index matches if the node has every block that it remembers", async () => {
    await indexOurs();
    expect(await compare()).toBeNull();
  });

  test("An index matches if the node has only the newest block that it remembers", async () => {
    await indexOurs();
    node.become(async (call, pass) => {
      const isOld = isForNumber(call.params) && Number(call.params?.[0]) < 1_000;
      return call.method === "eth_getBlockByNumber" && isOld ? replyTo(call, null) : pass(call);
    });
    expect(await compare()).toBeNull();
  });
});

describe("an unknown chain", () => {
  test("Ponder is not started while the node returns null, after any number of attempts", async () => {
    await indexOurs();
    let nulls = 0;
    node.become(async (call, pass) => {
      const reply = await forgetful(call, pass);
      if (reply?.result === null) nulls += 1;
      return reply;
    });
    while (nulls < 100) expect(await compare()).toBe(UNKNOWN);
    node.become(null);
    expect(await compare()).toBeNull();
  });

  test("Ponder is not started while the node returns a malformed block or another block than requested", async () => {
    await indexOurs();
    const newest = await askNode(another.rpcUrl)({ id: 1, method: "eth_getBlockByNumber", params: ["latest", false] });
    const first = (await askNode(another.rpcUrl)({ id: 1, method: "eth_getBlockByNumber", params: ["0x0", false] }))
      .result as object;
    const broken = ["hash", "number", "timestamp"].flatMap((field) => [{ [field]: undefined }, { [field]: null }]);
    for (const result of [
      {},
      [],
      "0x",
      newest.result,
      { ...first, hash: "0x" },
      ...broken.map((b) => ({ ...first, ...b })),
    ]) {
      node.become(async (call, pass) => (isForNumber(call.params) ? replyTo(call, result) : pass(call)));
      expect(await compare()).toBe(UNKNOWN);
    }
    for (const result of [null, {}, { ...first, number: null }]) {
      node.become(async (call, pass) => (call.params?.[0] === "latest" ? replyTo(call, result) : pass(call)));
      await expect(compare()).rejects.toThrow();
    }
  });

  test("Ponder is not started while the node is behind a block that is final in the index", async () => {
    await indexOurs();
    await finalize(1_011n, 1_800_000_000n);
    expect(await compare()).toBe("the node is behind a block that is final in the index");
  });

  test("Ponder is not started while the node returns errors or drops connections", async () => {
    await indexOurs();
    for (const fault of [async (call) => refuse(call, -32_000, "too busy"), async () => null] satisfies Fault[]) {
      node.become(fault);
      await expect(compare()).rejects.toThrow();
    }
  });
});

describe("another chain", () => {
  const OTHER = expect.stringContaining("the index is not from the node's chain");

  test("The chain is another one if its newest remembered block has another hash, until the node returns the right one", async () => {
    await indexOurs();
    node.become(fromAnother);
    expect(await compare()).toEqual(OTHER);
    node.become(null);
    expect(await compare()).toBeNull();
  });

  test("The chain is another one after a rollback to another branch, even while it is still behind", async () => {
    await sync({ ...(await blockOf(ours, 8n)), hash: ABSENT });
    await sync({ number: 2_000n, timestamp: 0n, hash: ABSENT });
    await finalize(2_000n, 1_800_000_000n);
    expect(await compare()).toEqual(OTHER);
  });

  test("The chain is another one if a final block has another time, even without a stored transfer", async () => {
    const { number, timestamp } = await blockOf(ours, 8n);
    await finalize(number, timestamp);
    expect(await compare()).toBeNull();
    node.become(fromAnother);
    expect(await compare()).toEqual(OTHER);
  });

  test("The reason names the block, the expected values, and what to do", async () => {
    await sync({ ...(await blockOf(ours, 8n)), hash: ABSENT });
    const reason = await compare();
    const { hash } = await blockOf(ours, 8n);
    for (const part of ["block 8", ABSENT, hash, "2023-11-14T22:13:", "npm run index:drop"])
      expect(reason).toContain(part);
  });
});
