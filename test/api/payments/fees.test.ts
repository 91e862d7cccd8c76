import fc from "fast-check";
import { type Hex, numberToHex, pad } from "viem";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { assertWorthwhile } from "../../../api/payments/settle/simulation.ts";
import { createFinality } from "../../../api/platform/chain/chain.ts";
import {
  CEILING,
  type Fees,
  feesWithin,
  type Market,
  MOST_FEE,
  marketOf,
  offerIn,
  replacementFor,
} from "../../../api/platform/relayer/fees.ts";
import { startBaseLike } from "../../support/base-like/base-like.ts";
import { HALT_MINUTES, POOL_ERRORS, BASE as PROFILE } from "../../support/base-like/profiles.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { passTime, setClockBack } from "../../support/eventually.ts";
import { forFile } from "../../support/for-file.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { chargedOnce, nothingCharged, settlements } from "../../support/payments/on-chain.ts";
import { purpose, type Relaying, startRelaying } from "../../support/payments/relaying.ts";
import { post, send, v2 } from "../../support/payments/requests.ts";
import { newPayer, type Signed, signPayment } from "../../support/payments/signing.ts";
import { PAY_TO } from "../../support/service/environment.ts";
import { startService } from "../../support/service/service.ts";

const startBase = () => forFile(startBaseLike({ profile: { ...PROFILE, backends: [{ lagMs: 0 }] } }));

describe("The cost of settlements", async () => {
  const ORACLE = "0x420000000000000000000000000000000000000f";
  /** Longer than the chain's fees are cached. */
  const FORGOTTEN_MS = 2_100;

  const base = await startBase();
  const { chain } = base;
  // A settlement costs 100,000 gas at 0.006 gwei, which is 0.0018 USDC, less than a hundredth of the price.
  const plan = { chain, now: base.now };
  const strict = await forFile(
    startService({ ...plan, config: { rpcUrls: base.rpcUrls, costCeiling: { percent: 5, ethUsd: 3_000 } } }),
  );
  const forgotten = () => passTime(FORGOTTEN_MS);
  const buy = (signed: Signed) => post(`${strict.url}/test/basic`, v2(signed));
  /** Returns the cost of a settlement on Base from /status, in wei. */
  async function shown({ url }: { readonly url: string }): Promise<number> {
    const [sender] = (await send(`${url}/status`)).body.senders as readonly { readonly cost_wei: string }[];
    return Number(sender?.cost_wei);
  }
  /** The approximate cost per settlement at normal fees. */
  const QUIET_WEI = 6e11;

  let signed: Signed;

  beforeEach(async () => {
    await base.fees(1);
    await chain.client.setCode({ address: ORACLE, bytecode: "0x" });
    signed = await signPayment(await newPayer(chain));
  });

  test("A settlement that costs less than its share of the price is submitted", async () => {
    expect((await buy(signed)).status).toBe(200);
    await chargedOnce(chain, signed);
    expect(Math.abs((await shown(strict)) / QUIET_WEI - 1)).toBeLessThan(0.02);
  });

  test("A payment gets 503 and is not submitted while gas costs fifty times as much, and the same header settles afterwards", async () => {
    await base.fees(50);
    forgotten();
    base.calls.reset();
    const answer = await buy(signed);
    expectProblem(answer, 503, "payment_pending");
    expect(answer.headers.get("retry-after")).not.toBeNull();
    expect(base.calls.byMethod()).not.toHaveProperty("eth_sendRawTransaction");
    await nothingCharged(chain, signed.authorization.from);
    expect(strict.logged.some((line) => line.includes("more than 5%"))).toBe(true);
    await base.fees(1);
    forgotten();
    expect((await buy(signed)).status).toBe(200);
    await chargedOnce(chain, signed);
  });

  test("By default a payment costs at most half of its price, even if a node suggests a tip of 1,000 gwei", async () => {
    const plain = await startService({ ...plan, config: { rpcUrls: base.rpcUrls }, jobs: false });
    base.become(async (call, pass) =>
      call.method === "eth_maxPriorityFeePerGas" ? { ...(await pass(call)), result: "0xe8d4a51000" } : pass(call),
    );
    try {
      expect((await post(`${plain.url}/test/basic`, v2(signed))).status).toBe(200);
      const [{ transaction } = { transaction: "0x" as Hex }] = await settlements(chain, signed.authorization.from);
      const { gasUsed, effectiveGasPrice } = await chain.client.getTransactionReceipt({ hash: transaction });
      const costInUsdc = (gasUsed * effectiveGasPrice * 3_000n) / 10n ** 12n;
      expect(costInUsdc * 2n).toBeLessThanOrEqual(signed.authorization.value);
    } finally {
      base.become(null);
      await plain.stop();
    }
  });

  /** Makes the parent chain charge this fee for a payment's data. */
  async function chargeForData(fee: bigint): Promise<void> {
    // PUSH32 fee; MSTORE at 0; RETURN 32 bytes
    const bytecode: Hex = `0x7f${pad(numberToHex(fee), { size: 32 }).slice(2)}60005260206000f3`;
    await chain.client.setCode({ address: ORACLE, bytecode });
    // Nodes see the new code from the next block on.
    await base.pass(0.1);
  }

  describe("The cost of one settlement", () => {
    let relaying: Relaying;
    beforeEach(async () => {
      relaying = await startRelaying(base.url);
      return async () => {
        vi.restoreAllMocks();
        base.become(null);
        await relaying.stop();
      };
    });

    test("A settlement may cost exactly its share of the price and not one atomic unit more", async () => {
      const { relayer } = relaying;
      const ceiling = { percent: 5, ethUsd: 3_000 };
      const cost = ((await relayer.costWei()) * 3_000n) / 10n ** 12n;
      expect(cost).toBeGreaterThan(1_000n);
      await assertWorthwhile(relayer, ceiling, cost * 20n);
      await expect(assertWorthwhile(relayer, ceiling, cost * 20n - 1n)).rejects.toThrow(/more than 5%/);
    });

    test("The parent chain's data fee counts where the chain has an oracle for it", async () => {
      const fee = 5n * 10n ** 12n;
      await chargeForData(fee);
      expect(Math.abs(Number(await relaying.another().costWei()) / (QUIET_WEI + Number(fee)) - 1)).toBeLessThan(0.02);
    });
  });
});

describe("The relayer's fees", async () => {
  // A halt separates this chain's clock from the machine's.
  const base = await startBase();
  const { client } = base.chain;
  const GAS = 100_000n;

  let relaying: Relaying;
  let sent = 0;

  beforeEach(async () => {
    base.become(null);
    await base.resume();
    await base.fees(1);
    relaying = await startRelaying(base.url);
    await base.chain.setBalance(relaying.relayer.address, 10n ** 18n);
    return () => relaying.stop();
  });

  const send = (by = relaying.relayer, mostFee?: bigint): Promise<Hex> =>
    by.send({ to: PAY_TO, data: "0x", gas: GAS, lane: "batch", purpose: purpose(`payment ${sent++}`), mostFee });
  const isMined = async (hash: Hex): Promise<boolean> =>
    (await client.getTransactionReceipt({ hash }).catch(() => null))?.status === "success";
  const hashes = async () => (await relaying.rows()).map((row) => row.hashes.length);
  const newest = async () => (await relaying.rows()).map((row) => row.hashes.at(-1));

  describe(`A halt of ${HALT_MINUTES} minutes`, () => {
    test("A halt changes no fee and broadcasts nothing again, because no block was mined", async () => {
      base.halt();
      const hash = await send();
      base.calls.reset();
      for (let half = 0; half < HALT_MINUTES * 2; half++) await relaying.tendAfter(30);
      expect(await hashes()).toEqual([1]);
      expect(base.calls.byMethod().eth_sendRawTransaction ?? 0).toBe(0);
      await base.resume();
      expect(await isMined(hash)).toBe(true);
    });

    test("A pool that loses its transactions during a halt gets all of them again, lowest nonce first", async () => {
      base.halt();
      const all: Hex[] = [];
      while (all.length < 5) all.push(await send());
      base.pool.forget();
      expect(base.pool.waiting()).toEqual([]);
      await relaying.tendAfter(5);
      expect(base.pool.waiting()).toEqual(all);
      await base.resume();
      expect(await Promise.all(all.map(isMined))).toEqual(all.map(() => true));
    });
  });

  describe.each([
    ["swallows", "swallowed"],
    ["refuses", { refusedWith: POOL_ERRORS.full }],
  ] as const)("A pool that %s a transaction", (_, outcome) => {
    test("The same transaction is broadcast again", async () => {
      base.pool.treat(outcome);
      const hash = await send();
      expect(await isMined(hash)).toBe(false);
      await relaying.tendAfter(5);
      expect(await isMined(hash)).toBe(true);
      expect(await hashes()).toEqual([1]);
    });
  });

  describe("A fifty-fold fee spike", () => {
    const stuck = async (count: number): Promise<void> => {
      base.halt();
      while ((await hashes()).length < count) await send();
      await base.fees(50);
      await base.resume();
      await base.pass(1);
    };
    const market = () => PROFILE.baseFee * 50n + PROFILE.priorityFee;

    test("Stuck transactions are replaced once, at no more than four times the market", async () => {
      await stuck(3);
      const fresh = relaying.another();
      for (let half = 0; half < 10; half++) await relaying.tendAfter(31, fresh);
      expect(await hashes()).toEqual([2, 2, 2]);
      expect(await Promise.all((await newest()).map((hash) => isMined(hash as Hex)))).toEqual([true, true, true]);
      for (const { reserved } of await relaying.rows()) expect(reserved).toBeLessThanOrEqual(27_300n * 4n * market());
    });

    test("If the balance cannot cover replacements for all, none is replaced, and the originals are mined after the spike", async () => {
      await stuck(3);
      const poor = 27_300n * market() * 3n;
      await base.chain.setBalance(relaying.relayer.address, poor);
      const fresh = relaying.another();
      for (let half = 0; half < 10; half++) await relaying.tendAfter(31, fresh);
      expect(await hashes()).toEqual([1, 1, 1]);
      await base.fees(1);
      await base.pass(1);
      expect(await Promise.all((await newest()).map((hash) => isMined(hash as Hex)))).toEqual([true, true, true]);
    });

    test("If the balance just covers the replacements, they reserve no more than the balance in total", async () => {
      await stuck(3);
      const balance = (27_300n * market() * 3n * 12n) / 10n;
      await base.chain.setBalance(relaying.relayer.address, balance);
      await base.pass(0.05);
      base.halt();
      await relaying.tendAfter(31, relaying.another());
      const rows = await relaying.rows();
      expect(rows.map((row) => row.hashes.length)).toEqual([2, 2, 2]);
      const reserved = rows.reduce((sum, row) => sum + row.reserved, 0n);
      expect(reserved).toBeLessThanOrEqual(balance);
      await base.resume();
      expect(await Promise.all((await newest()).map((hash) => isMined(hash as Hex)))).toEqual([true, true, true]);
    });
  });

  test("A new transaction needs a balance that covers its fee and the fees of all unmined transactions", async () => {
    base.halt();
    await send();
    const [{ reserved } = { reserved: 0n }] = await relaying.rows();
    // Enough for two and a half, of which a tenth must remain.
    await base.chain.setBalance(relaying.relayer.address, (reserved * 26n) / 10n);
    const fresh = relaying.another();
    await send(fresh);
    await expect(send(fresh)).rejects.toThrow(/has no gas/);
    expect(await hashes()).toEqual([1, 1]);
  });

  test("A transaction with a fee limit waits while gas costs more, and one without a limit is sent", async () => {
    await base.fees(50);
    const fresh = relaying.another();
    await expect(send(fresh, PROFILE.baseFee * 40n)).rejects.toThrow(/waits until gas is cheaper/);
    expect(await relaying.rows()).toEqual([]);
    const most = PROFILE.baseFee * 52n;
    expect((await client.getTransaction({ hash: await send(fresh, most) })).maxFeePerGas).toBe(most);
    expect(await isMined(await send(fresh))).toBe(true);
  });
});

describe("Fees", () => {
  const RICH = 10n ** 30n;
  const GWEI = 10n ** 9n;
  const wei = fc.bigInt({ min: 0n, max: 10_000n * GWEI });
  const market = fc.record({ baseFee: fc.bigInt({ min: 1n, max: 10_000n * GWEI }), tip: wei });
  const offered = fc
    .tuple(wei, wei)
    .map(([tip, rest]): Fees => ({ maxFeePerGas: tip + rest, maxPriorityFeePerGas: tip }));

  const asks = ({ baseFee, tip }: Market): bigint => baseFee + tip;
  const suffices = (fees: Fees, now: Market): boolean =>
    fees.maxFeePerGas >= asks(now) && fees.maxPriorityFeePerGas >= now.tip;

  describe("Replacement of a transaction", () => {
    test("A transaction that meets the market price is not replaced", () => {
      fc.assert(
        fc.property(offered, market, (was, now) => {
          if (suffices(was, now)) expect(replacementFor(was, now, RICH)).toBeNull();
        }),
      );
    });

    test("A replacement satisfies the nodes' increase rule and the market and stays below both ceilings", () => {
      fc.assert(
        fc.property(offered, market, fc.bigInt({ min: 0n, max: 50_000n * GWEI }), (was, now, affordable) => {
          const by = replacementFor(was, now, affordable);
          if (by === null) return;
          expect(suffices(by, now)).toBe(true);
          expect(by.maxFeePerGas * 10n).toBeGreaterThanOrEqual(was.maxFeePerGas * 11n);
          expect(by.maxPriorityFeePerGas * 10n).toBeGreaterThanOrEqual(was.maxPriorityFeePerGas * 11n);
          expect([by.maxFeePerGas > was.maxFeePerGas, by.maxPriorityFeePerGas > was.maxPriorityFeePerGas]).toEqual([
            true,
            true,
          ]);
          expect(by.maxPriorityFeePerGas).toBeLessThanOrEqual(by.maxFeePerGas);
          expect(by.maxFeePerGas).toBeLessThanOrEqual(asks(now) * CEILING);
          expect(by.maxFeePerGas).toBeLessThanOrEqual(affordable);
        }),
      );
    });

    test("A transaction is replaced once per market rise, however long it is stuck", () => {
      fc.assert(
        fc.property(offered, market, (was, now) => {
          const by = replacementFor(was, now, RICH);
          if (by !== null) expect(replacementFor(by, now, RICH)).toBeNull();
        }),
      );
    });
  });

  test("An offer made at ordinary fees is replaced as soon as the base fee exceeds it", () => {
    const quiet = { baseFee: 5_000_000n, tip: 0n };
    const fees = offerIn(quiet);
    expect(fees).toEqual({ maxFeePerGas: 12_000_000n, maxPriorityFeePerGas: 0n });
    expect(replacementFor(fees, { baseFee: 12_000_000n, tip: 0n }, RICH)).toBeNull();
    expect(replacementFor(fees, { baseFee: 12_000_001n, tip: 0n }, RICH)).toEqual({
      maxFeePerGas: 28_800_002n,
      maxPriorityFeePerGas: 1n,
    });
  });

  describe("The market of three readings", () => {
    test("One wrong reading cannot move the market outside the range of the other two", () => {
      fc.assert(
        fc.property(fc.tuple(market, market), market, fc.nat(2), ([one, other], wrong, place) => {
          const readings = [one, other];
          readings.splice(place, 0, wrong);
          const [low, high] = one.baseFee < other.baseFee ? [one, other] : [other, one];
          const read = marketOf(readings);
          expect(read.baseFee).toBeGreaterThanOrEqual(low.baseFee);
          expect(read.baseFee).toBeLessThanOrEqual(high.baseFee);
          expect([one.tip, other.tip].some((tip) => read.tip <= tip)).toBe(true);
        }),
      );
    });

    test.each([
      ["0.005 gwei on a quiet day", 5_000_000n, 5_000_000n],
      ["half of a higher base fee", 2n * GWEI, GWEI],
      ["3 gwei", 50n * GWEI, 3n * GWEI],
    ])("The market's tip is at most %s, whatever the nodes suggest", (_, baseFee, tip) => {
      expect(marketOf(Array(3).fill({ baseFee, tip: 1_000n * GWEI }))).toEqual({ baseFee, tip });
    });
  });

  describe("A new transaction", () => {
    test("A new transaction offers no more than its limit and waits while the market asks for more", () => {
      fc.assert(
        fc.property(market, wei, (now, most) => {
          if (asks(now) > most || asks(now) > MOST_FEE)
            expect(() => feesWithin(most, now)).toThrow(/waits until gas is cheaper/);
          else {
            const offer = feesWithin(most, now);
            expect(suffices(offer, now)).toBe(true);
            expect(offer.maxFeePerGas).toBeLessThanOrEqual(most);
            expect(offer.maxFeePerGas).toBeLessThanOrEqual(MOST_FEE);
          }
        }),
      );
    });

    test("A new transaction and its replacements offer at most 100 gwei", () => {
      fc.assert(
        fc.property(offered, market, (was, now) => {
          expect(replacementFor(was, now, RICH)?.maxFeePerGas ?? 0n).toBeLessThanOrEqual(100n * GWEI);
        }),
      );
      expect(() => feesWithin(undefined, { baseFee: 100n * GWEI, tip: 1n })).toThrow(/waits/);
      expect(feesWithin(undefined, { baseFee: 99n * GWEI, tip: GWEI }).maxFeePerGas).toBe(100n * GWEI);
    });
  });
});

describe("A clock that is set back", async () => {
  // Setting the clock back must not make a cached chain reading look fresh.

  const GAS = 100_000n;
  const ETHER = 10n ** 18n;
  /** Longer than a chain reading is cached, and much shorter than the clock adjustment. */
  const FORGOTTEN_MS = 2_001;

  const chain = await forFile(startTestChain());
  const { client } = chain;
  let relaying: Relaying;

  beforeEach(async () => {
    relaying = await startRelaying(chain.rpcUrl);
    await chain.setBalance(relaying.relayer.address, ETHER);
    return () => relaying.stop();
  });
  afterEach(() => void vi.restoreAllMocks());

  const send = (name: string) =>
    relaying.relayer
      .send({ to: PAY_TO, data: "0x", lane: "batch", gas: GAS, purpose: purpose(name) })
      .then((hash) => relaying.relayer.waitFor(hash, 20_000));
  const baseFee = async (wei: bigint) => {
    await client.setNextBlockBaseFeePerGas({ baseFeePerGas: wei });
    await chain.mine();
  };

  test("Cached fees expire after the clock is set back", async () => {
    await baseFee(10n ** 7n);
    const { maxFeePerGas: quiet } = await relaying.relayer.terms(GAS);
    setClockBack();
    await baseFee(10n ** 9n);
    expect((await relaying.relayer.terms(GAS)).maxFeePerGas).toBe(quiet);
    passTime(FORGOTTEN_MS);
    expect((await relaying.relayer.terms(GAS)).maxFeePerGas).toBeGreaterThan(quiet * 20n);
  });

  test("The final block is read again after the clock is set back, so a sent transaction becomes final", async () => {
    const finality = createFinality(client);
    const first = await finality.confirmed();
    await send("a payment");
    await relaying.tendAfter(30);
    expect(await relaying.rows()).toMatchObject([{ state: "mined" }]);
    setClockBack();
    await chain.mine(10);
    // Longer than the period over which two readings of the final block are compared.
    passTime(61_000);
    expect((await finality.confirmed())?.number).toBeGreaterThan(first?.number ?? 0n);
    await relaying.tendAfter(30);
    expect(await relaying.rows()).toMatchObject([{ state: "final" }]);
  });
});
