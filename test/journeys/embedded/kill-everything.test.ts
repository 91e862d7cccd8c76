import { setTimeout as sleep } from "node:timers/promises";
import type { LocalAccount } from "viem";
import { generatePrivateKey, privateKeyToAddress } from "viem/accounts";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { NETWORKS } from "../../../api/kernel/networks.ts";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import { USDC_ABI } from "../../../scripts/embedded/usdc.ts";
import { chance } from "../../support/chance.ts";
import { disagreements, paymentsOnChain, readJournal } from "../../support/payments/books.ts";
import { expectPaymentRequired } from "../../support/payments/expectations.ts";
import { type Answer, post, send, v2 } from "../../support/payments/requests.ts";
import { type Signed, signPayment, unixNow } from "../../support/payments/signing.ts";
import { createInstallation, type Installation, type Run } from "../../support/service/installation.ts";

const KILLS = Number(process.env.KILLS ?? 2);
const SEED = Number(process.env.KILL_SEED ?? Math.floor(Math.random() * 2 ** 31));

vi.setConfig({ testTimeout: 180_000 + KILLS * 60_000, hookTimeout: 60_000 });
const SOON = { timeout: 90_000, interval: 250 };

/** Between two payments of one buyer. Each is a block, and a start is ready once the indexes have followed them. */
const PAUSE_MS = 1_000;
const LONG_SECONDS = 3_600n;
/** The shortest window that is taken is 20 seconds; the rest is for a slow machine between a signature and its arrival. */
const SHORT_SECONDS = 30n;
/** Pays others than the service: that is its activity. */
const SHOPPER = devAccount(4);

const json = async (url: string) => (await send(url, { headers: { accept: "application/json" } })).body;
const activityOf = async ({ url }: Installation, wallet: string) =>
  (await json(`${url}/verify?wallet=${wallet}`)).activity as Record<string, unknown>;

async function up(installation: Installation, run: Run): Promise<void> {
  await run.ready;
  expect(await json(`${installation.url}/status`)).toMatchObject({ ok: true, indexer: { ready: true } });
}

/** A third party's payment, authorized by the shopper and sent by a stranger. It is sent once: a kill may lose it. */
async function shop({ chain }: Installation): Promise<void> {
  const to = privateKeyToAddress(generatePrivateKey());
  const { authorization, signature } = await signPayment(SHOPPER, { to, value: 1_000n });
  const { from, value, validAfter, validBefore, nonce } = authorization;
  await chain.writeContract({
    account: devAccount(5),
    chain: null,
    address: NETWORKS["eip155:8453"].usdc.address,
    abi: USDC_ABI,
    functionName: "transferWithAuthorization",
    args: [from, to, value, validAfter, validBefore, nonce, signature],
  });
}

/** The index says of the shopper what the present chain's logs say. */
async function expectIndexAgrees(installation: Installation): Promise<void> {
  const payments = await paymentsOnChain(installation);
  const count = payments.filter(({ from }) => from === SHOPPER.address).length;
  const agreed = { available: true, settled_payments: count, distinct_counterparties: count };
  await vi.waitFor(async () => expect(await activityOf(installation, SHOPPER.address)).toMatchObject(agreed), SOON);
}

describe.concurrent("a kill -9 of everything that npm start runs", () => {
  describe("at random moments", () => {
    interface Purchase {
      readonly signed: Signed;
      readonly windowSeconds: bigint;
      readonly statuses: number[];
      readonly text: string;
    }
    interface Buyer {
      readonly account: LocalAccount;
      readonly windowSeconds: bigint;
      readonly bought: Purchase[];
    }

    test(`loses no payment and no result (${KILLS} kills)`, async ({ onTestFailed, onTestFinished }) => {
      onTestFailed(() => console.error(`KILLS=${KILLS} KILL_SEED=${SEED}`));
      const installation = await createInstallation();
      onTestFinished(installation.remove, 60_000);
      const random = chance(SEED);
      const buyers = [LONG_SECONDS, LONG_SECONDS, SHORT_SECONDS].map(
        (windowSeconds, index): Buyer => ({ account: devAccount(index), windowSeconds, bought: [] }),
      );
      const over = new AbortController();
      const trading = [
        ...buyers.map((buyer) => buy(installation, buyer, over.signal)),
        shopOn(installation, over.signal),
      ];
      try {
        for (let kill = 0; kill < KILLS; kill++) {
          const run = installation.start();
          if (kill % 2 === 0) await sleep(random() * 10_000);
          else {
            await up(installation, run);
            await eachIsAnswered(buyers);
            await sleep(random() * 2_000);
          }
          await run.kill();
        }
        await up(installation, installation.start());
        await eachIsAnswered(buyers);
      } finally {
        over.abort();
      }
      await Promise.all(trading);
      await vi.waitFor(async () => expect(await disagreements(installation)).toEqual([]), SOON);
      await expectIndexAgrees(installation);
      await expectAnswersKept(
        installation,
        buyers.flatMap(({ bought }) => bought),
      );
    });

    /** Pays again and again, each payment with the same header until it is answered. */
    async function buy(installation: Installation, { account, windowSeconds, bought }: Buyer, over: AbortSignal) {
      while (!over.aborted) {
        await sleep(PAUSE_MS);
        const fields = payingTo(installation, windowSeconds);
        if (fields === null) continue;
        const signed = await signPayment(account, fields);
        bought.push({ signed, windowSeconds, ...(await sendUntilAnswered(installation, signed)) });
      }
    }

    /** The keys are among the first things that a first start makes. */
    function payingTo(installation: Installation, windowSeconds: bigint) {
      try {
        return { to: installation.payTo(), validBefore: unixNow() + windowSeconds };
      } catch {
        return null;
      }
    }

    async function sendUntilAnswered({ url }: Installation, signed: Signed) {
      const statuses: number[] = [];
      for (;;) {
        const answer = await post(`${url}/test/basic`, v2(signed)).catch(() => null);
        if (answer !== null) statuses.push(answer.status);
        if (answer !== null && answer.status !== 503) return { statuses, text: answer.text };
        await sleep(100);
      }
    }

    async function shopOn(installation: Installation, over: AbortSignal): Promise<void> {
      for (; !over.aborted; await sleep(PAUSE_MS)) await shop(installation).catch(() => undefined);
    }

    /** Every payment that was pending has its answer, and so has one that was sent since. */
    async function eachIsAnswered(buyers: readonly Buyer[]): Promise<void> {
      const before = buyers.map(({ bought }) => bought.length);
      const answered = () => buyers.every(({ bought }, index) => bought.length > (before[index] ?? 0) + 1);
      await vi.waitFor(() => expect(answered()).toBe(true), SOON);
    }

    async function expectAnswersKept(installation: Installation, bought: readonly Purchase[]): Promise<void> {
      const [payments, rows] = await Promise.all([paymentsOnChain(installation), readJournal(installation)]);
      const outcomes = bought.map(({ signed, windowSeconds, statuses, text }) => {
        const { nonce } = signed.authorization;
        const row = rows.find((one) => one.nonce === nonce);
        const settled = payments.filter((one) => one.nonce === nonce).length;
        const kept = row?.state === "fulfilled" && row.response === text && settled === 1;
        const gone = windowSeconds === SHORT_SECONDS && (row === undefined || row.state === "void") && settled === 0;
        const last = statuses.at(-1);
        if (statuses.slice(0, -1).every((status) => status === 503) && ((last === 200 && kept) || gone)) return "right";
        return { nonce, statuses, text, settled, state: row?.state, reason: row?.reason };
      });
      expect(outcomes.filter((outcome) => outcome !== "right")).toEqual([]);
      expect(bought.filter(({ statuses }) => statuses.at(-1) === 200).length).toBeGreaterThan(KILLS);
    }
  });

  describe("with a saved chain that is older than settlements", () => {
    interface Certified {
      readonly wallet: LocalAccount;
      readonly signed: Signed;
      readonly answer: Answer;
    }
    let installation: Installation;
    let gone: Certified[];
    let back: Certified[];

    beforeAll(async () => {
      installation = await createInstallation();
      const run = installation.start();
      await up(installation, run);
      const restore = installation.keepSavedChain();
      await shop(installation);
      const early = [await certify(0, SHORT_SECONDS), await certify(1, LONG_SECONDS)] as const;
      await vi.waitFor(async () => expect(await shopped()).toBe(1), SOON);
      // Beyond what the journal and the index hold for final.
      await installation.chain.mine({ blocks: 100 });
      await vi.waitFor(async () => expect(await finalOnes(early)).toBe(early.length), SOON);
      const late = [await certify(2, SHORT_SECONDS), await certify(3, LONG_SECONDS)] as const;
      [gone, back] = [
        [early[0], late[0]],
        [early[1], late[1]],
      ];
      await run.kill();
      restore();
      installation.tearFiles();
      const windowEnd = Math.max(...gone.map(({ signed }) => Number(signed.authorization.validBefore)));
      while (Number(unixNow()) <= windowEnd) await sleep(250);
      await up(installation, installation.start());
    }, 300_000);
    afterAll(() => installation?.remove(), 60_000);

    async function certify(index: number, windowSeconds: bigint): Promise<Certified> {
      const wallet = devAccount(index);
      const fields = { to: installation.payTo(), validBefore: unixNow() + windowSeconds };
      const signed = await signPayment(wallet, fields);
      const answer = await pay(signed);
      expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
      return { wallet, signed, answer };
    }

    const shopped = async () => (await activityOf(installation, SHOPPER.address)).settled_payments;
    const pay = (signed: Signed) => post(`${installation.url}/test/basic`, v2(signed));
    const recordOf = (answer: Answer) => json(String(answer.body.cert_url));
    const verify = ({ address }: LocalAccount) => json(`${installation.url}/verify?wallet=${address}`);
    const settlementsOf = async ({ authorization: { nonce } }: Signed) =>
      (await paymentsOnChain(installation)).filter((one) => one.nonce === nonce);

    const placeOf = ({ transaction, block }: { transaction?: unknown; block?: unknown }) => ({ transaction, block });
    const placesOf = async (signed: Signed) => (await settlementsOf(signed)).map(placeOf);
    const placeIn = async (answer: Answer) => placeOf((await recordOf(answer)).settlement as object);

    async function finalOnes(certified: readonly Certified[]): Promise<number> {
      const nonces = certified.map(({ signed }) => signed.authorization.nonce);
      return (await readJournal(installation)).filter(({ nonce, isFinal }) => isFinal && nonces.includes(nonce)).length;
    }

    test("a settlement that is gone for good is marked: its certificate stays, and no longer verifies", async () => {
      for (const { wallet, signed, answer } of gone) {
        await vi.waitFor(async () => expect(await recordOf(answer)).toMatchObject({ reversed: true }), SOON);
        expect(await recordOf(answer)).toMatchObject({ id: answer.body.id, verdict: "pass", fresh: false });
        expect(await verify(wallet)).toMatchObject({
          tested: true,
          verified: false,
          certs: [{ id: answer.body.id, fresh: false, reversed: true }],
        });
        expect(expectPaymentRequired(await pay(signed))).toMatch(/permanently removed from the chain/);
        expect(await settlementsOf(signed)).toEqual([]);
      }
    });

    test("a settlement that can still be made is made again: its certificate stays, and says where", async () => {
      for (const { wallet, signed, answer } of back) {
        await vi.waitFor(async () => expect(await placesOf(signed)).toEqual([await placeIn(answer)]), SOON);
        expect(await placeIn(answer)).not.toEqual(placeOf(answer.body.settlement as object));
        expect(await recordOf(answer)).toMatchObject({ id: answer.body.id, fresh: true, reversed: false });
        expect(await verify(wallet)).toMatchObject({
          verified: true,
          certs: [{ id: answer.body.id, reversed: false }],
        });
        const replay = await pay(signed);
        expect([replay.status, replay.text]).toEqual([200, answer.text]);
      }
    });

    test("the journal, the index and the chain agree again", async () => {
      await vi.waitFor(async () => expect(await disagreements(installation)).toEqual([]), SOON);
      await expectIndexAgrees(installation);
      expect(await shopped()).toBe(0);
    });
  });
});
