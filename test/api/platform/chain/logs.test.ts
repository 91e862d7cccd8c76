import {
  createPublicClient,
  HttpRequestError,
  http,
  InvalidParamsRpcError,
  type PublicClient,
  RpcRequestError,
  TimeoutError,
} from "viem";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createNewestLogs } from "../../../../api/platform/chain/authorizations.ts";
import { createLogSearch } from "../../../../api/platform/chain/log-search.ts";
import { type BlockRange, createLogReader, logRefusal } from "../../../../api/platform/chain/logs.ts";
import { createAllowance } from "../../../../api/platform/chain/pace.ts";
import type { Expected } from "../../../../api/platform/chain/view.ts";
import type { Address } from "../../../../api/platform/wallet.ts";
import { startBaseLike } from "../../../support/base-like/base-like.ts";
import { BASE as PROFILE } from "../../../support/base-like/profiles.ts";
import { startTestChain } from "../../../support/chain/chain.ts";
import { startFaultyNode, unreachable } from "../../../support/chain/nodes.ts";
import { refuse } from "../../../support/chain/rpc.ts";
import { forFile } from "../../../support/for-file.ts";
import { broadcast } from "../../../support/payments/on-chain.ts";
import { BASE, newPayer, type Signed, signPayment } from "../../../support/payments/signing.ts";

describe("The search for logs", async () => {
  const chain = await forFile(startTestChain());
  await chain.mine(1_000);
  const head = await chain.client.getBlockNumber();
  const node = await forFile(startFaultyNode(chain));
  const client: PublicClient = createPublicClient({ transport: http(node.url) });
  const { address } = chain.network.usdc;
  const filter = { address, topics: [] };
  const NOTHING = { address: `0x${"00".repeat(19)}01`, topics: [] } as const;

  let asked: BlockRange[] = [];
  let time = 0;
  const reader = () => createLogReader({ client, mostBlocks: 400, now: () => time });
  const widths = () => asked.map(({ from, to }) => Number(to - from + 1n));

  /** Makes the provider refuse ranges of more blocks with this message. */
  function refusing(blocks: number, words: string): void {
    node.become(async (call, pass) => {
      const [range] = call.params as [{ fromBlock: string; toBlock: string }];
      const [from, to] = [BigInt(range.fromBlock), BigInt(range.toBlock)];
      asked.push({ from, to });
      return to - from + 1n > BigInt(blocks) ? refuse(call, -32_602, words) : pass(call);
    });
  }

  beforeEach(() => {
    asked = [];
    time = 0;
    node.become(null);
  });

  async function readAll(logs: ReturnType<typeof reader>, range: BlockRange) {
    const read: BlockRange[] = [];
    for await (const page of logs.pages(filter, range)) read.push(page.read);
    return read;
  }

  test("Every block of a range is read exactly once despite refusals", async () => {
    refusing(150, "block range is too large");
    const read = await readAll(reader(), { from: 1n, to: 1_000n });
    let next = 1n;
    for (const { from, to } of read) {
      expect(from).toBe(next);
      next = to + 1n;
    }
    expect(next).toBe(1_001n);
  });

  test("A refused width is not requested again for ten minutes", async () => {
    refusing(150, "range 400 exceeds limit of 150");
    const logs = reader();
    await readAll(logs, { from: 1n, to: 600n });
    expect(widths()).toEqual([400, 150, 150, 150, 150]);
    time = 599_999;
    expect(logs.width()).toBe(150n);
    time = 600_000;
    expect(logs.width()).toBe(300n);
    await readAll(logs, { from: 1n, to: 150n });
    await readAll(logs, { from: 1n, to: 300n });
    expect(widths().slice(-3)).toEqual([300, 150, 150]);
    expect(logs.width()).toBe(150n);
    time = 10_000_000;
    expect(logs.width()).toBe(400n);
  });

  test("A range with too many logs does not change the width for other ranges", async () => {
    refusing(150, "query returned more than 10000 results");
    const logs = reader();
    await readAll(logs, { from: 1n, to: 100n });
    await readAll(logs, { from: 1n, to: 200n });
    expect(logs.width()).toBe(400n);
  });

  test("Refused calls count toward a lookup's allowance", async () => {
    refusing(1, "block range is too large");
    const allowance = createAllowance(3);
    expect(await reader().page(filter, { from: 1n, to: 400n }, { at: "end", allowance })).toBeNull();
    expect(widths()).toEqual([400, 200, 100]);
    expect(asked.every(({ to }) => to === 400n)).toBe(true);
  });

  test("A search continues where the last one stopped and gives up after a minute without a log", async () => {
    refusing(100, "block range is too large");
    const logs = createLogReader({ client, mostBlocks: 100, now: () => time });
    const search = createLogSearch({ logs, blockSeconds: 2, pause: async () => undefined, now: () => time });
    const area = { from: 1n, to: 500n, start: 301n, first: "up", head } as const;
    const look = () =>
      search({ key: "one", filter: NOTHING, area, read: () => null, blockOf: () => 0n, allowance: createAllowance(2) });
    expect([await look(), await look(), await look()]).toEqual(["unfinished", "unfinished", "unfinished"]);
    expect(asked.map(({ from }) => Number(from))).toEqual([301, 401, 201, 101, 1]);
    time = 60_001;
    for (let times = 0; times < 2; times++) expect(await look()).toBe("unfinished");
    expect(await look()).toBe("nowhere");
  });
});

describe("Refusals", () => {
  const RANGE = { from: 1_000n, to: 9_999n };
  const answered = (code: number, message: string) =>
    new RpcRequestError({ body: { method: "eth_getLogs" }, error: { code, message }, url: "http://node" });

  describe("Refused log ranges", () => {
    // The wording of providers and nodes, with the place where it was seen.
    test.each([
      // INFURA/infura#237
      [-32_602, "range 1000000 exceeds limit of 5000", 5_000n],
      // bobanetwork/boba_legacy#827 (Tenderly)
      [-32_602, "range 9009594 is bigger than range limit 2000", 2_000n],
      // eternalsafe/wallet#57 (QuickNode)
      [-32_614, "eth_getLogs is limited to a 1,000 range", 1_001n],
      // thirdweb-dev/js#275 (QuickNode)
      [-32_602, "eth_getLogs and eth_newFilter are limited to a 1,000 blocks range", 1_001n],
      // boundless-xyz/boundless#838 (Alchemy)
      [
        -32_600,
        "You can make eth_getLogs requests with up to a 500 block range. Based on your parameters, this block range should work: [0x3e8, 0x5db]",
        500n,
      ],
      // AlphaWallet/alpha-wallet-android#2736 (BNB Chain)
      [-32_000, "exceed maximum block range: 5000", 5_001n],
      // ponder-sh/ponder#1940 (Ankr)
      [-32_602, "maximum [from, to] blocks distance: 1000", 1_001n],
      // circlefin/arc-node#383 (reth)
      [-32_600, "Query exceeds max block range of 1000", 1_000n],
      // erigontech/erigon#20784
      [-32_000, "query block range exceeds server limit, narrow your filter: 1000", 1_000n],
      // enviodev/hyperindex#605
      [-32_000, "block range is larger than max block range, block range = 9000, max block range = 1000", 1_000n],
      // moonbeam-foundation/moonbeam#3250
      [-32_603, "block range is too wide (maximum 1024)", 1_025n],
      // scroll-tech/go-ethereum#529
      [-32_000, "block range is bigger than maxBlockRange", 4_500n],
      // AlphaWallet/alpha-wallet-ios#5277
      [-32_600, "block range too high", 4_500n],
      // @ponder/utils (dRPC, PublicNode, Base)
      [35, "ranges over 10000 blocks are not supported on freetier", 4_500n],
      [-32_701, "exceed maximum block range: 50000", 4_500n],
      [-32_000, "block range too large", 4_500n],
    ])("A range with too many blocks is recognized: %i %s", (code, message, width) => {
      expect(logRefusal(answered(code, message), RANGE)).toEqual({ width, tooMany: "blocks" });
      expect(logRefusal(new InvalidParamsRpcError(answered(code, message)), RANGE)?.width).toBe(width);
    });

    test.each([
      // aurora-is-near/aurora-relayer#327, ChainSafe/lodestar#2288 (Infura)
      [-32_005, "query returned more than 10000 results", 4_500n],
      // ponder-sh/ponder#724 (zkSync)
      [-32_602, "Query returned more than 10000 results. Try with this block range [0x3e8, 0x7cf].", 1_000n],
      // bancorprotocol/webapp#523 (Alchemy)
      [-32_602, "Log response size exceeded. Please reduce query block range.", 4_500n],
      // erigontech/erigon#20784
      [-32_000, "query returns too many logs, narrow your filter: 20000", 4_500n],
      // @ponder/utils (Arbitrum, reth, OP Mainnet)
      [-32_000, "logs matched by query exceeds limit of 10000", 4_500n],
      [-32_602, "query exceeds max results 20000, retry with the range 1000-1010", 4_500n],
      [-32_020, "backend response too large", 4_500n],
    ])("A range with too many logs is recognized: %i %s", (code, message, width) => {
      expect(logRefusal(answered(code, message), RANGE)).toEqual({ width, tooMany: "logs" });
    });

    test.each([
      // ethereum/execution-apis#875
      [-32_602, "block range extends beyond current head block"],
      [-32_000, "header not found"],
      // stakewise/v3-operator#775, latticexyz/mud#1522
      [-32_005, "project ID request rate exceeded"],
      [-32_005, "daily request count exceeded, request rate limited"],
      [429, "Your app has exceeded its compute units per second capacity."],
      [-32_012, "credits limited to 6000/sec"],
      [-32_603, "Internal error"],
    ])("Another error is not taken for a refused range: %i %s", (code, message) => {
      expect(logRefusal(answered(code, message), RANGE)).toBeNull();
    });

    test("A timeout or a gateway error is not taken for a refused range", () => {
      const url = "http://node";
      expect(logRefusal(new TimeoutError({ body: {}, url }), RANGE)).toBeNull();
      expect(logRefusal(new HttpRequestError({ status: 502, details: "Bad Gateway", url }), RANGE)).toBeNull();
    });

    test("A gateway's 413 response is taken for a range with too many logs", () => {
      const error = new HttpRequestError({ status: 413, details: "backend response too large", url: "http://node" });
      expect(logRefusal(error, RANGE)).toEqual({ width: 4_500n, tooMany: "logs" });
    });

    test("A refused range of one block is not split further", () => {
      expect(logRefusal(answered(-32_005, "query returned more than 10000 results"), { from: 5n, to: 5n })).toBeNull();
    });
  });
});

describe("The newest logs", async () => {
  const OVERLAP = 8;
  const NEWEST = 300;

  const base = await forFile(startBaseLike({ profile: { ...PROFILE, backends: [{ lagMs: 0 }] } }));
  const { chain } = base;
  const payer = await newPayer(chain);
  afterEach(() => base.become(null));

  /** A process that has not read anything yet. */
  function begin(mostBlocks = 10_000) {
    const client = createPublicClient({ transport: http(base.url, { retryCount: 0 }), cacheTime: 0 });
    return createNewestLogs(createLogReader({ client, mostBlocks }), BASE.usdc.address);
  }
  const sign = () => signPayment(payer, { validBefore: base.unixNow() + 7_200n });
  const headNumber = async () => Number(await chain.client.getBlockNumber());
  const expectedOf = ({ authorization: { from, to, ...terms } }: Signed, fromBlock: number): Expected => ({
    ...terms,
    payer: from.toLowerCase() as Address,
    payTo: to,
    fromBlock,
  });
  const logCalls = () => base.calls.byMethod().eth_getLogs ?? 0;

  test("One call shows which of several payments have paid, and where", async () => {
    const newestLogs = begin();
    const [early, late, never] = [await sign(), await sign(), await sign()];
    const at = await headNumber();
    const first = await broadcast(chain, early);
    await base.pass(1);
    const between = await headNumber();
    const second = await broadcast(chain, late);
    const head = { number: await headNumber(), time: base.unixNow() };
    base.calls.reset();
    const asked = [expectedOf(late, between), expectedOf(never, between), expectedOf(early, at)];
    const seen = await Promise.all(asked.map((one) => newestLogs(one, head)));
    expect(seen).toMatchObject([
      { nonce: "paid", settlement: { transaction: second, block: between + 1 }, final: false },
      null,
      { nonce: "paid", settlement: { transaction: first, block: at + 1 }, final: false },
    ]);
    expect(logCalls()).toBe(1);
  });

  test("A payment is found on a node that lags a little behind the head recorded on arrival", async () => {
    const signed = await sign();
    const transaction = await broadcast(chain, signed);
    const block = await headNumber();
    const head = { number: block, time: base.unixNow() };
    expect(await begin()(expectedOf(signed, block + OVERLAP), head)).toMatchObject({ settlement: { transaction } });
  });

  test.each([
    [NEWEST, 10_000],
    [50, 50],
  ])("A payment that needs %i blocks is left to its own search if a call covers at most %i", async (most, accepted) => {
    const signed = await sign();
    const transaction = await broadcast(chain, signed);
    const [number, time] = [await headNumber(), base.unixNow()];
    const newestLogs = begin(accepted);
    base.calls.reset();
    expect(await newestLogs(expectedOf(signed, number - most + OVERLAP), { number, time })).toBeNull();
    expect(base.calls.total()).toBe(0);
    expect(await newestLogs(expectedOf(signed, number - most + OVERLAP + 1), { number, time })).toMatchObject({
      settlement: { transaction },
    });
  });

  test("A node that does not answer decides nothing", async () => {
    const signed = await sign();
    await broadcast(chain, signed);
    const head = { number: await headNumber(), time: base.unixNow() };
    base.become(unreachable);
    expect(await begin()(expectedOf(signed, head.number), head)).toBeNull();
  });
});
