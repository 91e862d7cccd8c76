import fc from "fast-check";
import { concat, encodeDeployData, getContractAddress, type Hex, serializeErc6492Signature, zeroHash } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { connect } from "../../../api/platform/db/connection.ts";
import { createPurchaseStore } from "../../../api/purchases/store.ts";
import { artifactOf } from "../../support/chain/contracts.ts";
import { forFile } from "../../support/for-file.ts";
import { type KeptPayment, keepPayments, transactionAt } from "../../support/payments/journal-rows.ts";
import { PRICES } from "../../support/payments/prices.ts";
import { challengeOf, send } from "../../support/payments/requests.ts";
import { deployWallet, SMART_WALLET_ABI } from "../../support/payments/wallets.ts";
import {
  allPurchases,
  challengeIn,
  type ListedPurchase,
  pageIn,
  present,
  purchasesUrl,
  type Signatory,
  signed,
  signInAt,
} from "../../support/purchases/sign-in.ts";
import { prune, startService } from "../../support/service/service.ts";
import { from, payControl, startRun } from "../../support/sessions/runs.ts";
import { startStage } from "../../support/sessions/stage.ts";

const MINUTES = 60_000;
let ahead = 0;
const now = () => new Date(Date.now() + ahead);

/** The deterministic deployment proxy. It takes a salt and creation code, and the local chains have it. */
const FACTORY: Hex = "0x4e59b44847b379578588920ca78fbf26c0b4956c";

const stage = await forFile(
  startStage(
    { now, config: { walletFactories: [FACTORY], trustedProxies: ["127.0.0.1", "::1"] } },
    { roomMinutes: 90 },
  ),
);
const { chain, owner, service } = stage;
const url = purchasesUrl(service.url);
const newAccount = () => privateKeyToAccount(generatePrivateKey());

beforeEach(() => {
  ahead = 0;
});

/** The index of each purchase, encoded in its transaction. */
const placesOf = (purchases: readonly ListedPurchase[]): readonly number[] =>
  purchases.map(({ transaction }) => Number(BigInt(transaction)) - 1);

describe("GET /purchases", () => {
  test("The list has settled payments, without pending, reversed, and never submitted ones", async () => {
    const payer = newAccount();
    const states = ["received", "settling", "settled", "fulfilled", "reversed", "bait"] as const;
    const receivedAt = new Date("2026-05-01T12:00:00.000Z");
    const kept = { payer: payer.address, receivedAt, answer: { told: "once" } };
    await keepPayments(
      owner,
      states.map((state) => ({ ...kept, state, paymentId: state === "settled" ? "challenge:abc" : `id-of-${state}` })),
    );
    const { purchases } = pageIn(await signInAt(url, payer));
    const common = { resource: `${service.url}/test/basic`, received_at: receivedAt.toISOString(), answer_from: null };
    expect(purchases.toSorted((a, b) => a.transaction.localeCompare(b.transaction))).toMatchObject([
      { ...common, transaction: transactionAt(2), payment_id: null, answer: null, answer_state: "pending" },
      {
        ...common,
        transaction: transactionAt(3),
        payment_id: "id-of-fulfilled",
        answer: { status: 200, body: { told: "once" } },
        answer_state: "stored",
      },
    ]);
  });

  test("A page has at most 20 purchases and 512 KiB of responses, but at least one purchase", async () => {
    const [many, large] = [newAccount(), newAccount()];
    // All have the same timestamp, and no page may skip any of them.
    const receivedAt = new Date("2026-05-01T12:00:00.000Z");
    const rows = (payer: Signatory, count: number, answer: object) =>
      keepPayments(owner, new Array(count).fill({ payer: payer.address, receivedAt, state: "fulfilled", answer }));
    await rows(many, 45, {});
    await rows(large, 5, { text: "x".repeat(262_000) });
    const sizesOf = async (wallet: Signatory) =>
      (await allPurchases(url, wallet)).map(({ purchases }) => placesOf(purchases).length);
    expect(await sizesOf(many)).toEqual([20, 20, 5]);
    expect(await sizesOf(large)).toEqual([3, 2]);
    expect((await signInAt(url, large)).text.length).toBeLessThan(1_048_576);
  });

  test("The list has exactly the purchases of the wallet that signed in, in order, for any journal and page size", async () => {
    const times = fc.integer({ min: 0, max: 6 }).map((second) => new Date(Date.UTC(2026, 5, 1) + second * 1_000));
    const payment = fc.record({
      of: fc.constantFrom(0, 0, 0, 1, 2),
      receivedAt: times,
      state: fc.constantFrom<KeptPayment["state"][]>(
        "settling",
        "settled",
        "fulfilled",
        "fulfilled",
        "reversed",
        "bait",
      ),
      network: fc.constantFrom("eip155:8453" as const, "eip155:8453" as const, "eip155:84532" as const),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(payment, { minLength: 60, maxLength: 140 }), async (made) => {
        const wallets = [newAccount(), newAccount(), newAccount()];
        await keepPayments(
          owner,
          made.map(({ of, ...kept }) => ({ ...kept, payer: (wallets[of] as Signatory).address })),
        );
        for (const [index, wallet] of wallets.entries()) {
          const pages = await allPurchases(url, wallet);
          const listed = pages.flatMap(({ purchases }) => purchases);
          const own = made.flatMap(({ of, state, network }, place) =>
            of === index && network === "eip155:8453" && /settled|fulfilled/.test(state) ? [place] : [],
          );
          expect(placesOf(listed).toSorted((a, b) => a - b)).toEqual(own);
          const received = listed.map(({ received_at }) => received_at);
          expect(received).toEqual(received.toSorted().reverse());
          expect(new Set(pages.map((page) => page.wallet))).toEqual(new Set([wallet.address.toLowerCase()]));
        }
      }),
      { numRuns: 8 },
    );
  });
});

describe("test that may be running", () => {
  test("The list withholds the response to an order for an hour, and marks the session's token as shared if another address reads it", async () => {
    const run = await startRun({ ...stage, at: service.url }, "scam", { first: "control" });
    await send(`${service.url}/test/scam/attempt?wallet=${run.account.address}&session=${run.token}`, {
      method: "POST",
    });
    await payControl(run);
    const shared = async () =>
      (await owner.query("SELECT token_shared FROM test_session WHERE id = $1", [run.id])).rows[0].token_shared;
    expect(await shared()).toBe(false);
    const [order, start] = pageIn(await signInAt(url, run.account, from("203.0.113.9"))).purchases;
    expect(start).toMatchObject({ resource: `${service.url}/test/scam/start`, answer: { body: { armed: true } } });
    expect(await shared()).toBe(true);
    const until = new Date(Date.parse(order?.received_at ?? "") + 60 * MINUTES).toISOString();
    expect(order).toMatchObject({
      resource: `${service.url}/test/scam/attempt`,
      amount: String(PRICES.control),
      payment_id: null,
      answer: null,
      answer_state: "withheld",
      answer_from: until,
    });
    ahead = 60 * MINUTES + 1_000;
    const [later] = pageIn(await signInAt(url, run.account)).purchases;
    expect(later).toMatchObject({ answer: { body: { deliverable: { type: "order" } } }, answer_state: "stored" });
  });

  test("An order whose response was lost is shown like any other", async () => {
    const payer = newAccount();
    const order = { payer: payer.address, receivedAt: now() };
    await keepPayments(owner, [
      { ...order, route: "test.retry.first", state: "settled" },
      { ...order, route: "test.retry.second", state: "fulfilled", answer: { order: "here it is" } },
    ]);
    const { purchases } = pageIn(await signInAt(url, payer));
    const shown = purchases.map(({ resource, answer, answer_state, answer_from }) => [
      resource,
      answer,
      answer_state,
      answer_from,
    ]);
    expect(shown[0]).toEqual([`${service.url}/test/retry/attempt`, null, "withheld", expect.any(String)]);
    expect(shown[1]).toEqual(shown[0]);
  });
});

describe("used nonces", () => {
  test("A used nonce is kept for an hour and then deleted", async () => {
    const pool = connect(service.database.apiUrl, 1);
    onTestFinished(() => pool.end());
    const rest = "ab".repeat(28);
    const issued = (minutesAgo: number) => (Date.now() - minutesAgo * MINUTES).toString(16).padStart(12, "0") + rest;
    const [old, young] = [issued(75), issued(45)];
    const store = createPurchaseStore(pool);
    expect([await store.useNonce(old), await store.useNonce(young)]).toEqual([true, true]);
    expect([await prune(pool), await prune(pool)]).toEqual([1, 0]);
    expect([await store.useNonce(old), await store.useNonce(young)]).toEqual([true, false]);
  });
});

describe("smart wallet that signs in", () => {
  const asWallet = (address: Hex, { signMessage }: Signatory): Signatory => ({ address, signMessage });
  const refusalOf = async (wallet: Signatory) => challengeOf(await signInAt(url, wallet)).error?.split(":")[0];

  test("A smart wallet signs in through its owner (ERC-1271) on its chain, and its owner is a different wallet", async () => {
    const owning = newAccount();
    const { address } = await deployWallet(chain, owning.address);
    await keepPayments(owner, [{ payer: address, receivedAt: now(), state: "fulfilled" }]);
    expect(pageIn(await signInAt(url, asWallet(address, owning))).purchases).toHaveLength(1);
    expect(pageIn(await signInAt(url, owning)).purchases).toEqual([]);
    expect(await refusalOf(asWallet(address, newAccount()))).toBe("invalid_siwx_signature");
  });

  test("A deployed wallet may wrap its signature, and an undeployed one gets an error that tells it to deploy first", async () => {
    const owning = newAccount();
    const wrapping = (address: Hex): Signatory => ({
      address,
      signMessage: async (message) =>
        serializeErc6492Signature({ address, data: "0x12", signature: await owning.signMessage(message) }),
    });
    const { address } = await deployWallet(chain, owning.address);
    expect(pageIn(await signInAt(url, wrapping(address))).wallet).toBe(address.toLowerCase());
    const nowhere: Hex = "0x0000000000000000000000000000000000dec0de";
    expect(challengeOf(await signInAt(url, wrapping(nowhere))).error).toMatch(
      /^invalid_siwx_signature: The wallet 0x0+dec0de is not deployed on base.*Deploy the wallet first/,
    );
  });

  test("An undeployed wallet signs in only if its factory is allowed (ERC-6492)", async () => {
    const owning = newAccount();
    const { bytecode } = artifactOf("SmartWallet");
    const creation = encodeDeployData({ abi: SMART_WALLET_ABI, bytecode, args: [owning.address] });
    const address = getContractAddress({ opcode: "CREATE2", from: FACTORY, salt: zeroHash, bytecode: creation });
    const by = (factory: Hex, account: Signatory): Signatory => ({
      address,
      signMessage: async (message) =>
        serializeErc6492Signature({
          address: factory,
          data: concat([zeroHash, creation]),
          signature: await account.signMessage(message),
        }),
    });
    expect(pageIn(await signInAt(url, by(FACTORY, owning))).wallet).toBe(address.toLowerCase());
    expect(await refusalOf(by(FACTORY, newAccount()))).toBe("invalid_siwx_signature");
    expect(await refusalOf(by("0x00000000000000000000000000000000bad0bad0", owning))).toBe("invalid_siwx_signature");
    expect(await chain.client.getCode({ address })).toBeUndefined();
  });

  test("While its chain is unreachable, a smart wallet gets a 503 and can retry the same header, but an account signs in", async () => {
    const rpcUrls = { ...service.config.rpcUrls, "eip155:8453": "http://127.0.0.1:9" };
    const { sealingKey } = service.config;
    const shared = { sealingKey, baseUrl: service.url };
    const away = await startService({
      chain,
      database: service.database,
      jobs: false,
      now,
      config: { ...shared, rpcUrls },
    });
    onTestFinished(() => away.stop());
    const there = `http://localhost:${away.config.port}/purchases`;
    const owning = newAccount();
    const { address } = await deployWallet(chain, owning.address);
    const signIn = await signed(asWallet(address, owning), challengeIn(await send(there)));
    const answer = await present(there, signIn);
    expect([answer.status, answer.body.code, answer.headers.get("retry-after")]).toEqual([503, "not_available", "5"]);
    expect(pageIn(await signInAt(there, owning)).purchases).toEqual([]);
    expect(pageIn(await present(url, signIn)).wallet).toBe(address.toLowerCase());
  });
});
