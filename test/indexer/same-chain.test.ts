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
/** The two tables as Ponder makes them, without what is not read. */
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
/** Serves ours until it is told otherwise. */
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

/** An index of our chain: it has synced to block 1,000 and is final at block 990. */
async function indexOurs(): Promise<void> {
  await sync(await blockOf(ours, 1_000n));
  await finalize(990n, (await blockOf(ours, 990n)).timestamp);
}

/** What the launcher learns. */
const compare = async (url = node.url) => whyNotSameChain(db, connectChain(url), await readHead([url]));

const UNKNOWN = "the node does not return any block that the index has stored";
const isForNumber = (params: readonly unknown[] | undefined) => /^0x/.test(String(params?.[0]));

/** No block by its number; the newest one as it is. */
const forgetful: Fault = async (call, pass) =>
  call.method === "eth_getBlockByNumber" && isForNumber(call.params) ? replyTo(call, null) : pass(call);
const fromAnother: Fault = async (call) => askNode(another.rpcUrl)(call);

describe("the index and the node's chain belong together", () => {
  test("when the index is empty", async () => {
    expect(await compare(another.rpcUrl)).toBeNull();
  });

  test("when every block that is remembered is there", async () => {
    await indexOurs();
    expect(await compare()).toBeNull();
  });

  test("when the node has no other block than the newest that is remembered", async () => {
    await indexOurs();
    node.become(async (call, pass) => {
      const isOld = isForNumber(call.params) && Number(call.params?.[0]) < 1_000;
      return call.method === "eth_getBlockByNumber" && isOld ? replyTo(call, null) : pass(call);
    });
    expect(await compare()).toBeNull();
  });
});

describe("nothing is known, and Ponder is not started", () => {
  test("while the node returns null, however often", async () => {
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

  test("while what the node returns is no block, or not the one that was asked for", async () => {
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

  test("while the node is behind a block that is final in the index", async () => {
    await indexOurs();
    await finalize(1_011n, 1_800_000_000n);
    expect(await compare()).toBe("the node is behind a block that is final in the index");
  });

  test("while the node answers with errors, or hangs up", async () => {
    await indexOurs();
    for (const fault of [async (call) => refuse(call, -32_000, "too busy"), async () => null] satisfies Fault[]) {
      node.become(fault);
      await expect(compare()).rejects.toThrow();
    }
  });
});

describe("the node's chain is another", () => {
  const OTHER = expect.stringContaining("the index is not from the node's chain");

  test("when the newest block that is remembered has another hash, until the node returns the right one", async () => {
    await indexOurs();
    node.become(fromAnother);
    expect(await compare()).toEqual(OTHER);
    node.become(null);
    expect(await compare()).toBeNull();
  });

  test("when the chain went back, took another path, and is still behind", async () => {
    await sync({ ...(await blockOf(ours, 8n)), hash: ABSENT });
    await sync({ number: 2_000n, timestamp: 0n, hash: ABSENT });
    await finalize(2_000n, 1_800_000_000n);
    expect(await compare()).toEqual(OTHER);
  });

  test("when a final block has another time, though no transfer was ever stored", async () => {
    const { number, timestamp } = await blockOf(ours, 8n);
    await finalize(number, timestamp);
    expect(await compare()).toBeNull();
    node.become(fromAnother);
    expect(await compare()).toEqual(OTHER);
  });

  test("and the reason says which block, what was expected and what to do", async () => {
    await sync({ ...(await blockOf(ours, 8n)), hash: ABSENT });
    const reason = await compare();
    const { hash } = await blockOf(ours, 8n);
    for (const part of ["block 8", ABSENT, hash, "2023-11-14T22:13:", "npm run index:drop"])
      expect(reason).toContain(part);
  });
});
