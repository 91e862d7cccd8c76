import { mkdir } from "node:fs/promises";
import type { LocalAccount } from "viem";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { formatUsd } from "../../../api/platform/money.ts";
import { askNode } from "../../../packages/mcp/src/base-node.ts";
import { keptIn } from "../../../packages/mcp/src/pending-payments.ts";
import type { Service } from "../../../packages/mcp/src/service.ts";
import { askTerms } from "../../../packages/mcp/src/shop.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { eventually } from "../../support/eventually.ts";
import { forFile } from "../../support/for-file.ts";
import {
  between,
  type ChainReport,
  call,
  connectLocal,
  counting,
  expired,
  type LocalPlan,
  newStateFolder,
  nonces,
  refusingAt,
  roadTo,
  signedIn,
} from "../../support/packages/mcp.ts";
import { broadcast, cancel, nothingCharged, settlements } from "../../support/payments/on-chain.ts";
import { PRICES } from "../../support/payments/prices.ts";
import { newPayer, type Signed } from "../../support/payments/signing.ts";
import { startService } from "../../support/service/service.ts";

/**
 * A refusal is not a promise. Another payment is signed only once the chain shows that the first can never be charged.
 */

const BASIC = { test: "basic" };
const CLAIM = { category: "payload-hash", conditions: { payload_text: "as agreed", expected_sha256: "0".repeat(64) } };

let payer: LocalAccount;
let signatures: () => number;
let folder: string;

const chain = await forFile(startTestChain());
const service = await forFile(startService({ chain }));

beforeEach(async () => {
  ({ payer, signatures } = counting(await newPayer(chain)));
  folder = newStateFolder();
  await mkdir(folder, { recursive: true });
});

/** Runs a new program for each call. Only the folder survives it. */
const certify = async (plan: Pick<LocalPlan, "service"> & Partial<LocalPlan>) =>
  call(await connectLocal({ payer, pending: keptIn(folder), ...plan }), "certify", BASIC);

/** Runs a call with the clock stopped at this time. */
async function certifyAt(now: number, plan: Parameters<typeof certify>[0]) {
  vi.useFakeTimers({ toFake: ["Date"], now });
  try {
    return await certify(plan);
  } finally {
    vi.useRealTimers();
  }
}

const charges = async () => (await settlements(chain, payer.address)).length;

const PENDING = { isError: false, structured: { status: "pending", price: { amount_usd: formatUsd(PRICES.basic) } } };
const PAID = { isError: false, structured: { status: "paid" } };
const error = (message: RegExp) => ({ isError: true, text: expect.stringMatching(message) });

describe("a refused payment", () => {
  test("The error states how long it stays open, and the next call sends it again", async () => {
    const poor = counting(await newPayer(chain, 0n));
    const road = roadTo(service.url, "open");
    const first = await certify({ service: road, payer: poor.payer });
    expect(first).toMatchObject(
      error(/answered 402: .*balance.* A payment of .* before 20\S+Z, and counts as open until/),
    );
    await chain.fund(poor.payer.address, PRICES.basic);
    const again = await certify({ service: road, payer: poor.payer });
    expect(again).toMatchObject(PENDING);
    const { from, nonce, validBefore } = signedIn(road.payments[0] ?? "").authorization;
    expect(again.structured.authorization).toEqual({ from, nonce, valid_before: String(validBefore) });
    expect(again.structured.what_to_do).toMatch(
      /although the service answered 402: .*; the service reports about the chain: .*can still settle.*No other one was signed/,
    );
    expect([poor.signatures(), new Set(road.payments).size, road.payments.length]).toEqual([1, 1, 2]);
    await nothingCharged(chain, poor.payer);
  });

  test("A refusal that an intermediary invented costs nothing, because the same payment buys", async () => {
    const { seller, kept } = refusingAt(service.url);
    expect(await certify({ service: seller })).toMatchObject(error(/answered 402: never submitted/));
    await broadcast(chain, kept[0] as Signed);
    const last = await certify({ service: roadTo(service.url, "open") });
    expect(last).toMatchObject({ ...PAID, structured: { signed_at: expect.any(String) } });
    expect([signatures(), await charges()]).toEqual([1, 1]);
  });

  test("A payment that was refused with 422 stays pending", async () => {
    const buy = async () => {
      const client = await connectLocal({ payer, pending: keptIn(folder), service: roadTo(service.url, "open") });
      return call(client, "arbiter_verify", { ...CLAIM, deal_ref: "deal 7", scored: true });
    };
    expect(await buy()).toMatchObject(error(/422/));
    expect(await buy()).toMatchObject({ structured: { status: "pending", what_to_do: expect.stringMatching(/422/) } });
    expect(signatures()).toBe(1);
    await nothingCharged(chain, payer);
  });
});

describe("the service's report of the chain", () => {
  const about = (asked: URLSearchParams) => ({ from: asked.get("from"), nonce: asked.get("nonce") });

  type Report = (asked: URLSearchParams) => ChainReport | number | null;

  test("Nothing else is signed unless the report is final", async () => {
    let report: Report = () => null;
    const { seller } = refusingAt(service.url, (asked) => report(asked));
    await certify({ service: seller });
    const open: Readonly<Record<string, Report>> = {
      "it can still settle": () => null,
      "cannot be read": () => 503,
      "knows no such path": () => 404,
      "the window has closed": (asked) => ({ ...about(asked), status: "pending", window: "closed", final: false }),
      "canceled, not for good": (asked) => ({ ...about(asked), status: "canceled", final: false }),
      "replaced, not for good": (asked) => ({ ...about(asked), status: "replaced", final: false }),
      "the nonce is used": (asked) => ({ ...about(asked), status: "used", final: false }),
      "another nonce has expired": (asked) => expired(asked, { nonce: `0x${"0b".repeat(32)}` }),
      "another wallet's has expired": (asked) => expired(asked, { from: `0x${"0b".repeat(20)}` }),
      "expired with an earlier end": (asked) => expired(asked, { valid_before: "1000" }),
      "expired by an earlier block": (asked) => expired(asked, { final_block: { time: "2020-01-01" } }),
      "expired by no block": (asked) => expired(asked, { final_block: undefined }),
      "expired by a block from the future": (asked) => expired(asked),
    };
    for (const [name, how] of Object.entries(open)) {
      report = how;
      expect([name, await certify({ service: seller }), signatures()]).toMatchObject([name, PENDING, 1]);
    }
    report = (asked) => ({ ...about(asked), status: "settled" });
    expect(await certify({ service: seller })).toMatchObject(
      error(/was charged, although .*402: never submitted.* removes the file \/\S+\.json\.$/),
    );
    expect(signatures()).toBe(1);
  });

  test("After a final report, the call signs another payment", async () => {
    const over: readonly Report[] = [
      (asked) => expired(asked),
      (asked) => ({ ...about(asked), status: "canceled" }),
      (asked) => ({ ...about(asked), status: "replaced" }),
    ];
    let report: Report = () => null;
    const { seller, kept } = refusingAt(service.url, (asked) => report(asked));
    await certify({ service: seller });
    let now = Date.now();
    for (report of over) {
      now += 600_000;
      await certifyAt(now, { service: seller });
    }
    expect([signatures(), nonces(kept).size]).toEqual([4, 4]);
  });
});

/** Signs so that the payment's window closes exactly with the newest block, and loses the payment. */
async function signToCloseNow() {
  await chain.increaseTime(2);
  const [{ timestamp }, terms] = await Promise.all([
    chain.client.getBlock(),
    askTerms(roadTo(service.url, "open"), { path: "/test/basic", body: {} }),
  ]);
  const seconds = Number(timestamp) - (terms.accepts[0]?.maxTimeoutSeconds ?? 0);
  await certifyAt(seconds * 1_000, { service: roadTo(service.url, "lost before"), giveUpAfterMs: 100 });
}

test("A closed window counts as open until a final block is past it", async () => {
  await signToCloseNow();
  const road = roadTo(service.url, "open");
  for (const _ of [1, 2]) {
    const answer = await certify({ service: road });
    expect(answer, answer.text).toMatchObject(PENDING);
    expect(answer.text).toMatch(/402: .*its window has closed, but no final block shows that yet/);
  }
  expect(signatures()).toBe(1);
  await chain.finalize();
  await eventually(async () => (await certify({ service: road })).structured.status, "paid");
  expect([signatures(), await charges()]).toEqual([2, 1]);
});

describe("with the user's own node", () => {
  const node = (seller: Service, url = chain.rpcUrl) => ({ service: seller, askPaymentState: askNode(url, seller) });

  test("A seller that refuses a payment, reports it as expired, and charges it later charges once", async () => {
    const { seller, kept } = refusingAt(service.url, (asked) => expired(asked));
    await certify(node(seller));
    const open = await certify(node(seller));
    expect(open).toMatchObject(PENDING);
    expect(open.text).toMatch(/it is not used in the newest final block, of 20/);
    await broadcast(chain, kept[0] as Signed);
    expect(await certify(node(seller))).toMatchObject(PENDING);
    await chain.finalize();
    expect(await certify(node(seller))).toMatchObject(
      error(/was charged, although .*a final block of the chain shows/),
    );
    expect([signatures(), await charges()]).toEqual([1, 1]);
  });

  test("A payment that expired or was canceled is over once that is final", async () => {
    await signToCloseNow();
    const { seller } = refusingAt(service.url);
    expect(await certify(node(seller))).toMatchObject(PENDING);
    await chain.finalize();
    await certify(node(seller));
    expect(signatures()).toBe(2);

    const { seller: other, kept } = refusingAt(service.url);
    expect(await certify(node(other))).toMatchObject(PENDING);
    await cancel(chain, payer, kept[0] as Signed);
    await chain.finalize();
    await eventually(async () => {
      await certify(node(other));
      return nonces(kept).size;
    }, 2);
  });

  test("A cancellation that the chain does not show is ignored", async () => {
    let transaction = "";
    const { seller, kept } = refusingAt(service.url, () => ({ status: "canceled", transaction }));
    await certify(node(seller));
    transaction = await broadcast(chain, kept[0] as Signed);
    await chain.finalize();
    expect(await certify(node(seller))).toMatchObject(error(/was charged/));
    transaction = `0x${"0b".repeat(32)}`;
    expect(await certify(node(seller))).toMatchObject(PENDING);
    expect(signatures()).toBe(1);
  });

  test("An unreachable node, or one of another chain, proves nothing", async () => {
    const { seller } = refusingAt(service.url, (asked) => expired(asked));
    await certify(node(seller));
    const elsewhere = await startTestChain({ network: "eip155:84532" });
    try {
      const other = await certify(node(seller, elsewhere.rpcUrl));
      expect(other).toMatchObject(PENDING);
      expect(other.text).toMatch(/BASE_RPC_URL cannot report .*it is on chain 84532, expected 8453/);
    } finally {
      await elsewhere.stop();
    }
    const away = await certify(node(seller, elsewhere.rpcUrl));
    expect(away).toMatchObject(PENDING);
    expect(away.text).toMatch(/BASE_RPC_URL cannot report/);
    expect(signatures()).toBe(1);
  });
});

test("An invalid response is requested again with the same payment", async () => {
  const spoiling = between(service.url, (answer) =>
    answer.headers.has("payment-response")
      ? { ...answer, text: answer.text.replace('"product":"basic"', '"product":"suite"') }
      : answer,
  );
  for (const _ of [1, 2])
    expect(await certify({ service: spoiling })).toMatchObject(
      error(/certifies suite, not basic.* removes the file \/\S+\.json\.$/),
    );
  expect(await certify({ service: roadTo(service.url, "open") })).toMatchObject(PAID);
  expect([signatures(), await charges()]).toEqual([1, 1]);
  const key = { service: service.url, path: "/test/basic", body: {}, wallet: payer.address };
  await eventually(async () => (await keptIn(folder).find({ key, began: Date.now() })) === null, true);
});
