import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterEach, describe, expect, test, vi } from "vitest";
import { readLogAnswer, WrongAnswerError } from "../../api/platform/chain/log-answers.ts";
import { openProvider, TooMuchError } from "../../api/platform/chain/provider.ts";
import { startFaultyNode } from "../support/chain/nodes.ts";
import { folderForFile, forFile } from "../support/for-file.ts";
import { serveHttp } from "../support/http-server.ts";
import { generateChain } from "../support/indexer/generated-chain.ts";
import { serveChain } from "../support/indexer/rpc-server.ts";
import { fetchInto, filesIn, readRows } from "./fetched.ts";

// Faulty responses of a node and how the fetch handles them.

const USDC = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913";
const TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
const word = (n: number | bigint) => `0x${n.toString(16).padStart(64, "0")}`;
const [PAYER, PAYEE] = [word(0xa1), word(0xa2)];
const filter = { address: USDC, topics: [TRANSFER, [PAYER]] };
const blocks = { first: 10, last: 20 };
const log = {
  ...{ address: USDC.toLowerCase(), blockNumber: "0xb", blockHash: word(11), transactionHash: word(1) },
  ...{ transactionIndex: "0x0", logIndex: "0x2", topics: [TRANSFER, PAYER, PAYEE], data: word(5), removed: false },
};
type Changed = Readonly<Record<string, unknown>>;
const reading = (...changed: readonly Changed[]) =>
  readLogAnswer(
    changed.map((one) => ({ ...log, ...one })),
    filter,
    blocks,
  );

test("Logs are read in the chain's order, with the address in any letter case", () => {
  const found = reading({ blockNumber: "0xc", blockHash: word(12) }, { address: USDC, logIndex: "0x3" }, {});
  expect(found.map(({ block, index }) => [block, index])).toEqual([
    [11, 2],
    [11, 3],
    [12, 2],
  ]);
});

test.each<[string, ...Changed[]]>([
  ["a block before the requested range", { blockNumber: "0x9" }],
  ["a block after the requested range", { blockNumber: "0x15" }],
  ["half a block", { blockNumber: "11.5" }],
  ["a negative block", { blockNumber: "-0xb" }],
  ["a block as a number", { blockNumber: 11 }],
  ["no block", { blockNumber: undefined }],
  ["no hash", { blockHash: undefined }],
  ["a short hash", { blockHash: "0x12" }],
  ["a hash in capitals", { blockHash: `0x${"AB".repeat(32)}` }],
  ["no transaction", { transactionHash: null }],
  ["no index", { logIndex: undefined }],
  ["an index of null", { logIndex: null }],
  ["a negative index", { logIndex: "-1" }],
  ["an index beyond 20 bits", { logIndex: "0x100000" }],
  ["no topics", { topics: undefined }],
  ["another event", { topics: [word(1), PAYER, PAYEE] }],
  ["another payer", { topics: [TRANSFER, PAYEE, PAYEE] }],
  ["no payee", { topics: [TRANSFER, PAYER] }],
  ["a payee that is not a word", { topics: [TRANSFER, PAYER, "0x1"] }],
  ["another contract", { address: `0x${"12".repeat(20)}` }],
  ["no contract", { address: undefined }],
  ["no value", { data: undefined }],
  ["an empty value", { data: "0x" }],
  ["a value beyond 63 bits", { data: word(2n ** 63n) }],
  ["a value of two words", { data: `${word(5)}${word(5).slice(2)}` }],
  ["a log that was removed", { removed: true }],
  ["a log twice", {}, {}],
  ["a log twice, out of order", {}, { blockNumber: "0xc", blockHash: word(12) }, {}],
  ["two hashes for a block", {}, { logIndex: "0x3", blockHash: word(12) }],
])("A response with %s is refused", (_, ...changed) => {
  expect(() => reading(...changed)).toThrow(WrongAnswerError);
});

test.each([null, {}, "logs", [null], [7], [[]]])("The response %j is refused", (answer) => {
  expect(() => readLogAnswer(answer, filter, blocks)).toThrow(WrongAnswerError);
});

describe("over HTTP", async () => {
  const refusals: string[] = [];
  const answers: (readonly [body: Buffer, encoding?: string])[] = [];
  const server = await forFile(
    serveHttp((request, response) => {
      request.resume();
      const retryAfter = refusals.shift();
      if (retryAfter !== undefined) {
        response.writeHead(429, { "retry-after": retryAfter });
        return response.end();
      }
      const [body, encoding] = answers.shift() ?? [Buffer.from('{"jsonrpc":"2.0","id":1,"result":"0x2105"}')];
      if (encoding !== undefined) response.setHeader("content-encoding", encoding);
      response.end(body);
    }),
  );
  const ask = () => openProvider([server.url], 10_000).ask("eth_chainId", [], Number);
  const whole = gzipSync('{"jsonrpc":"2.0","id":1,"result":"0x2105"}');

  test("A compressed response is read", async () => {
    answers.push([whole, "gzip"]);
    expect(await ask()).toBe(8453);
    expect(answers).toEqual([]);
  });

  test.each<[string, Buffer, string?]>([
    ["half of the JSON", Buffer.from('{"jsonrpc":"2.0","id":1,"resu')],
    ["half of a compressed body", whole.subarray(0, 20), "gzip"],
    ["text that claims to be compressed", Buffer.from("{}"), "gzip"],
    ["a compression that was not requested", whole, "br"],
    ["nothing", Buffer.alloc(0)],
  ])("After a response with %s, the node is queried again", async (_, body, encoding) => {
    answers.push(encoding === undefined ? [body] : [body, encoding]);
    expect(await ask()).toBe(8453);
    expect(answers).toEqual([]);
  });

  test("A clock that is set back by days during the run delays no request", async () => {
    const provider = openProvider([server.url], 10_000);
    const now = Date.now();
    const clock = vi.spyOn(Date, "now");
    for (const days of [0, -3, 3, -3]) {
      clock.mockReturnValue(now + days * 86_400_000);
      expect(await provider.ask("eth_chainId", [], Number)).toBe(8453);
    }
    clock.mockRestore();
  });

  test("A Retry-After date is relative to the node's clock, not to ours", async () => {
    const provider = openProvider([server.url], 10_000);
    const clock = vi.spyOn(Date, "now").mockReturnValue(Date.now() - 3 * 86_400_000);
    refusals.push(new Date(performance.timeOrigin + performance.now()).toUTCString());
    expect(await provider.ask("eth_chainId", [], Number)).toBe(8453);
    expect(refusals).toEqual([]);
    clock.mockRestore();
  });

  test("A node that demands a day's pause is paused for ten minutes, and another node is queried meanwhile", async () => {
    const logged: string[] = [];
    const provider = openProvider([server.url, server.url], 10_000, (line) => logged.push(line));
    refusals.push("86400");
    expect(await provider.ask("eth_chainId", [], Number)).toBe(8453);
    expect(await provider.ask("eth_chainId", [], Number)).toBe(8453);
    expect(logged).toEqual([expect.stringMatching(/^[^ ]+: HTTP 429.* Next request in 600 s$/)]);
  });

  test("A response that is too large for memory is aborted, compressed or not", async () => {
    const large = Buffer.alloc(64_000_001, " ");
    answers.push([gzipSync(large, { level: 1 }), "gzip"]);
    await expect(ask()).rejects.toThrow(TooMuchError);
    answers.push([large]);
    await expect(ask()).rejects.toThrow(TooMuchError);
  });
});

describe("a lying node", async () => {
  const plan = { transfers: 400, perBlock: 20, endsAt: 1_795_000_000, secondsPerBlock: 14_400 };
  const chain = generateChain(plan);
  const other = generateChain({ ...plan, forkOf: () => 1 });
  const longer = (of: typeof chain, blocks: number) => ({ ...of, head: of.last + 30 + blocks });
  const rpc = await forFile(serveChain(longer(chain, 0)));
  const elsewhere = await forFile(serveChain(longer(other, 10)));
  const node = await forFile(startFaultyNode({ rpcUrl: rpc.url }));
  const home = await folderForFile("trust-fetch-answers-");
  const expected = await truth();
  afterEach(() => node.become(null));

  async function truth() {
    const folder = join(home, "truth");
    await fetchInto({ folder, urls: [rpc.url], startBlock: 1 });
    const rows = await readRows(folder);
    expect(rows.length).toBeGreaterThan(30);
    return rows;
  }

  test("A node that switches to another chain ends the run, and no file mixes the two chains", async () => {
    let calls = 0;
    const away = await forFile(startFaultyNode({ rpcUrl: elsewhere.url }));
    node.become(async (call, pass) => {
      calls += 1;
      if (calls < 7) return pass(call);
      const response = await fetch(away.url, { method: "POST", body: JSON.stringify({ jsonrpc: "2.0", ...call }) });
      return (await response.json()) as Awaited<ReturnType<typeof pass>>;
    });
    const folder = join(home, "switched");
    await expect(fetchInto({ folder, urls: [node.url], startBlock: 1 })).rejects.toThrow(/two hashes|different chains/);
    const rows = filesIn(folder).length === 0 ? [] : await readRows(folder);
    expect(expected.slice(0, rows.length)).toEqual(rows);
  });

  test("A node on another chain than the files ends the run", async () => {
    const folder = join(home, "continued");
    await fetchInto({ folder, urls: [rpc.url], startBlock: 1 });
    await expect(fetchInto({ folder, urls: [elsewhere.url], startBlock: 1 })).rejects.toThrow(
      /are from different chains/,
    );
  });
});
