import { numberToHex, type PublicClient } from "viem";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { ChainReader } from "../../../../api/platform/chain/chain.ts";
import { createContractSignatures } from "../../../../api/platform/chain/signatures.ts";
import { NETWORKS } from "../../../../api/platform/networks.ts";
import type { Hex } from "../../../../api/platform/wallet.ts";
import { createAuthorizationReader } from "../../../../api/settlement-status/chain.ts";
import { settlementParts } from "../../../../api/settlement-status/index.ts";
import { STATEMENT_REQUEST } from "../../../../api/settlement-status/statement-request.ts";

// Unpaid requests to a node are limited and shared fairly between clients.

// The tests control the clock that sets the pace.
beforeAll(() => void vi.useFakeTimers({ toFake: ["setTimeout", "performance"] }));
afterAll(() => void vi.useRealTimers());
const pass = (seconds: number) => vi.advanceTimersByTimeAsync(seconds * 1_000);
/** Without a backlog, a call is sent in the next turn of the event loop. */
const departure = () => new Promise<void>((done) => setImmediate(done));

const address = (number: number): Hex => numberToHex(number, { size: 20 });
const nonce = (number: number): Hex => numberToHex(number, { size: 32 });
const FROM = address(7);
const FLOOD = 3_000;
const STATES_A_CALL = 500;
const NUMBER = 900n;
const TIME = 1_800_000_000n;
/** Returns an address of one network. */
const crowdOf = (item: number) => `198.51.100.${item % 256}`;

interface Asked {
  readonly callData: Hex;
}

/** A node that records its calls and answers only when the test calls `answer`. */
function slowNode() {
  const { chain, ...node } = slowChain();
  return { reader: createAuthorizationReader(chain, NETWORKS["eip155:8453"]), ...node };
}

function slowChain() {
  const calls: Hex[][] = [];
  const answer = Promise.withResolvers<void>();
  const client = {
    async readContract({ args: [asked] }: { args: readonly [readonly Asked[]] }) {
      // A nonce is the last word of its call. The last two calls read the block.
      const nonces = asked.slice(0, -2).map(({ callData }): Hex => `0x${callData.slice(-64)}`);
      calls.push(nonces);
      await answer.promise;
      return [...nonces.map(() => 0n), NUMBER, TIME].map((word) => ({ returnData: numberToHex(word, { size: 32 }) }));
    },
  } as unknown as PublicClient;
  const chain = { client, logs: { width: () => 100n } } as unknown as ChainReader;
  return { chain, calls, answer: answer.resolve };
}

test("During one network's flood, another client's request is in the next call, after paid ones", async () => {
  const { reader, calls, answer } = slowNode();
  const flood = Array.from({ length: FLOOD }, (_, item) =>
    reader.stateAgain({ from: FROM, nonce: nonce(item) }, crowdOf(item)).then(
      () => "told",
      (error: Error) => error.message,
    ),
  );
  const honest = reader.state({ from: FROM, nonce: nonce(5_001) }, "203.0.113.9");
  const paid = [5_002, 5_003].map((item) => reader.stateAgain({ from: FROM, nonce: nonce(item) }, null));
  await departure();
  answer();
  expect(calls).toHaveLength(1);
  expect(calls[0]).toHaveLength(STATES_A_CALL);
  expect(calls[0]?.slice(0, 2)).toEqual([nonce(5_002), nonce(5_003)]);
  expect(calls[0]).toContain(nonce(5_001));
  const reading = { used: false, at: { number: Number(NUMBER), time: TIME } };
  expect(await Promise.all([honest, ...paid])).toEqual([reading, reading, reading]);
  await pass(4);
  const told = await Promise.all(flood);
  expect(told.filter((one) => one === "told")).toHaveLength(1_999);
  expect(new Set(told)).toEqual(new Set(["told", "2000 are waiting already"]));
});

test("A flood from thousands of networks delays unpaid requests but never paid ones", async () => {
  const { reader, calls, answer } = slowNode();
  const ask = (item: number, asker: string | null) =>
    reader.stateAgain({ from: FROM, nonce: nonce(item) }, asker).then(
      () => "told",
      (error: Error) => error.message,
    );
  const flood = Array.from({ length: FLOOD }, (_, item) => ask(item, `10.${item >> 8}.${item & 255}.1`));
  // This client's network is one of thousands, and the others came first.
  expect(await ask(5_001, "203.0.113.9")).toBe("2000 are waiting already");
  const paid = Array.from({ length: 300 }, (_, item) => ask(6_000 + item, null));
  await departure();
  answer();
  expect(calls[0]?.slice(0, 300)).toEqual(Array.from({ length: 300 }, (_, item) => nonce(6_000 + item)));
  expect(new Set(await Promise.all(paid))).toEqual(new Set(["told"]));
  // Each call frees slots for later requests.
  const again = ask(5_001, "203.0.113.9");
  await pass(6);
  expect(await again).toBe("told");
  expect(await Promise.all(flood)).toContain("told");
});

test("A statement is sold while thousands of networks flood the free lookups", async () => {
  const { chain, calls, answer } = slowChain();
  const noDatabase = { query: () => Promise.reject(new Error("no database")) };
  const { lookUp, statements } = settlementParts(
    {
      pool: noDatabase,
      chains: { "eip155:8453": chain, "eip155:84532": chain },
      log: { warn: () => undefined },
      now: () => new Date(Number(TIME) * 1_000),
      keys: {},
    } as never,
    { lookUps: { rpcUrls: [], perSecond: 1, perClient: 1, perHour: 1 } },
    { heard: [] },
  );
  const authorization = { from: FROM, to: address(8), value: "1", validAfter: "0", validBefore: String(TIME + 60n) };
  const request = (item: number) =>
    STATEMENT_REQUEST.parse({ authorization: { ...authorization, nonce: nonce(item) } });
  const open = { to: null, value: null, validAfter: null, validBefore: TIME + 60n, transaction: null };
  const free = (item: number) =>
    lookUp(
      { network: "eip155:8453", from: FROM, nonce: nonce(item), ...open },
      { asker: `10.${item >> 8}.${item & 255}.1`, maySearch: async () => true },
    ).then(
      ({ status }) => status,
      (error: Error) => error.message,
    );
  const flood = Array.from({ length: FLOOD }, (_, item) => free(item));
  const sale = statements.admit(request(5_001), "203.0.113.9");
  await vi.waitUntil(() => calls.flat().includes(nonce(5_001)), { timeout: 20_000 });
  answer();
  expect(await sale).toMatchObject({ input: { authorization: { nonce: nonce(5_001) } } });
  await pass(6);
  expect(new Set(await Promise.all(flood))).toEqual(new Set(["pending", "2000 are waiting already"]));
});

test("A request that waits in a flood does not delay another client's request for the same nonce", async () => {
  const { reader, calls, answer } = slowNode();
  const same = { from: FROM, nonce: nonce(9_999) };
  const early = Array.from({ length: FLOOD }, (_, item) =>
    reader.state({ from: FROM, nonce: nonce(item) }, crowdOf(item)).catch(() => null),
  );
  const doomed = reader.state(same, "198.51.100.1").then(
    () => "told",
    () => "refused",
  );
  const honest = reader.state(same, "203.0.113.9");
  await departure();
  answer();
  expect(calls).toHaveLength(1);
  expect((await honest).used).toBe(false);
  expect(await doomed).toBe("refused");
  // The reading is cached, so this request takes no slot.
  expect(await reader.state(same, "198.51.100.1")).toEqual(await honest);
  await pass(4);
  await Promise.all(early);
});

/** A node on which only `contract` has code. */
function accountsNode(contract: Hex) {
  const [asked, deployed]: [Hex[], Hex[]] = [[], []];
  const client = {
    async getCode({ address: of }: { address: Hex }) {
      asked.push(of);
      return of === contract ? "0x6001" : undefined;
    },
    simulateContract: async () => ({ result: "0x1626ba7e" }),
    async call({ data }: { data: Hex }) {
      deployed.push(data);
      return { data: "0x01" };
    },
  } as unknown as PublicClient;
  const { verifyContractSignature: verify, verifyWrappedSignature: verifyWrapped } = createContractSignatures(client);
  return { verify, verifyWrapped, asked, deployed };
}

test("A flood of wrong signatures from new accounts is limited to a few calls at a time and does not delay a contract's signature", async () => {
  const contract = address(99_999);
  const { verify, asked } = accountsNode(contract);
  const signed = (payer: Hex) => ({ payer, digest: nonce(1), signature: "0x01" as const });
  const flood = Array.from({ length: FLOOD }, (_, item) =>
    verify(signed(address(1_000 + item)), crowdOf(item)).then(String, (error: Error) => error.message),
  );
  const honest = verify(signed(contract), "203.0.113.9");
  await departure();
  expect(asked).toHaveLength(20);
  await pass(0.2);
  expect(await honest).toBe(true);
  expect(asked.length).toBeLessThanOrEqual(60);
  expect(asked.indexOf(contract)).toBeLessThan(20);
  await pass(6);
  const told = await Promise.all(flood);
  expect(told.filter((one) => one === "false").length).toBeLessThanOrEqual(1_000);
  expect(new Set(told)).toEqual(new Set(["false", "1000 are waiting already"]));
  // The account is read at most once per block, because a contract may be deployed there.
  const before = asked.length;
  for (const _ of [1, 2, 3]) expect(await verify(signed(address(1_000)), crowdOf(0))).toBe(false);
  expect(asked.length).toBeLessThanOrEqual(before + 1);
});

test("Wrapped signatures of undeployed wallets wait in the same queue, although their accounts are known to have no code", async () => {
  const { verify, verifyWrapped, deployed } = accountsNode(address(99_999));
  const signed = { payer: address(1), digest: nonce(1), signature: "0x01" as const };
  expect(await verify(signed, crowdOf(0))).toBe(false);
  const flood = Array.from({ length: FLOOD }, (_, item) =>
    verifyWrapped(signed, crowdOf(item)).then(String, (error: Error) => error.message),
  );
  const honest = verifyWrapped({ ...signed, payer: address(2) }, "203.0.113.9");
  await departure();
  expect(deployed.length).toBeLessThanOrEqual(20);
  await pass(0.2);
  expect(await honest).toBe(true);
  expect(deployed.length).toBeLessThanOrEqual(60);
  await pass(6);
  const told = await Promise.all(flood);
  expect(told.filter((one) => one === "true").length).toBeLessThanOrEqual(1_000);
  expect(new Set(told)).toEqual(new Set(["true", "1000 are waiting already"]));
});
