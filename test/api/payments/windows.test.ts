import { decodePaymentResponseHeader } from "@x402/core/http";
import type { LocalAccount } from "viem";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { unixSeconds } from "../../../api/payments/signature.ts";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { startBaseLike } from "../../support/base-like/base-like.ts";
import { BASE } from "../../support/base-like/profiles.ts";
import { viewAt } from "../../support/base-like/view.ts";
import type { Call } from "../../support/chain/rpc.ts";
import { passTime } from "../../support/eventually.ts";
import { forFile } from "../../support/for-file.ts";
import { expectPaymentRequired, expectProblem } from "../../support/payments/expectations.ts";
import { broadcast, chargedOnce, nothingCharged } from "../../support/payments/on-chain.ts";
import { PRICES } from "../../support/payments/prices.ts";
import { type Answer, post, v2 } from "../../support/payments/requests.ts";
import { altered, newPayer, type Signed, signPayment } from "../../support/payments/signing.ts";
import { binary } from "../../support/service/database.ts";
import { startService, type TestService } from "../../support/service/service.ts";

/** The checks before a payment that is not in the journal is accepted or refused, and their cost in RPC calls. */

const DAY = 86_400n;
const HEAD_REMEMBERED_MS = 501;
/** One call for the head and four for looking up a payment. */
const CALLS_A_REQUEST = 5;

/** A single backend, because this file does not test nodes that disagree about a newly funded account. */
const base = await forFile(startBaseLike({ profile: { ...BASE, backends: [{ lagMs: 0 }] } }));
/** The time at which the services' clock is stopped, or null while it runs. */
let stopped: Date | null = null;
const now = () => stopped ?? base.now();
const start = () => startService({ chain: base.chain, now, jobs: false, config: { rpcUrls: base.rpcUrls } });
const service = await forFile(start());
/** A service whose journal has lost all payments that the other service accepted. */
const restored = await forFile(start());

let payer: LocalAccount;
beforeEach(async () => {
  payer = await newPayer(base.chain);
});

const valid = (seconds: bigint) => signPayment(payer, { validBefore: base.unixNow() + seconds });
const pay = (signed: Signed, to: TestService = service) => post(`${to.url}/test/basic`, v2(signed));

const rowOf = ({ authorization }: Signed, of: TestService = service) =>
  withClient(of.database.ownerUrl, async (client) => {
    const text = "SELECT state, reason FROM payment WHERE nonce = $1";
    return (await client.query<object>(text, [binary(authorization.nonce)])).rows[0] ?? null;
  });

/** Returns the response and the RPC calls that it takes without a cached head. */
async function counted<T>(ask: () => Promise<T>): Promise<{ answer: T; calls: Readonly<Record<string, number>> }> {
  passTime(HEAD_REMEMBERED_MS);
  base.calls.reset();
  return { answer: await ask(), calls: base.calls.byMethod() };
}

const total = (calls: Readonly<Record<string, number>>) => Object.values(calls).reduce((sum, count) => sum + count, 0);

describe("The longest window", () => {
  test("An authorization valid for one second more than 24 hours gets a 402 that names the limit, is not stored, and takes no RPC calls", async () => {
    stopped = base.now();
    onTestFinished(() => {
      stopped = null;
    });
    const signed = await signPayment(payer, { validBefore: unixSeconds(stopped) + DAY + 1n });
    const { answer, calls } = await counted(() => pay(signed));
    expect(expectPaymentRequired(answer)).toMatch(/sign one that is valid for at most 24 hours, until \S+Z\.$/);
    expect([calls, await rowOf(signed)]).toEqual([{}, null]);
    await nothingCharged(base.chain, payer);
  });
});

describe("RPC calls for worthless requests", () => {
  test("A forged signature takes one call per reading, at most three", async () => {
    const signed = await valid(120n);
    const forged = { ...signed, signature: altered(signed.signature) };
    const { answer, calls } = await counted(() => pay(forged));
    expect(expectPaymentRequired(answer)).toMatch(/signature is not the payer's/);
    expect(total(calls)).toBeLessThanOrEqual(3);
  });

  test("Terms that do not match the route take no calls, whatever the signature", async () => {
    const cheap = await signPayment(payer, { value: 1n, validBefore: base.unixNow() + 120n });
    for (const signed of [cheap, { ...cheap, signature: altered(cheap.signature) }]) {
      const { answer, calls } = await counted(() => pay(signed));
      expect(expectPaymentRequired(answer)).toMatch(/must be for exactly/);
      expect(calls).toEqual({});
    }
  });

  test("A malformed body takes no calls", async () => {
    const signed = await signPayment(payer, { value: PRICES.score, validBefore: base.unixNow() + 120n });
    const { answer, calls } = await counted(() => post(`${service.url}/score`, v2(signed), "[1]"));
    expectProblem(answer, 400, "malformed_request");
    expect(calls).toEqual({});
  });
});

/** Returns the settlement response without the service's signature. */
const settledBy = ({ headers }: Answer) => {
  const { extensions: _, ...settled } = decodePaymentResponseHeader(headers.get("payment-response") ?? "");
  return settled;
};

describe("A header whose window has closed", () => {
  test("A payment header without a journal row is looked up on the chain and gets its result once if it was paid", async () => {
    const signed = await valid(120n);
    const first = await pay(signed);
    expect(first.status).toBe(200);
    await base.pass(3);
    const { answer, calls } = await counted(() => pay(signed, restored));
    expect([answer.status, answer.body.wallet]).toEqual([200, payer.address.toLowerCase()]);
    expect(settledBy(answer)).toEqual(settledBy(first));
    expect(calls.eth_sendRawTransaction).toBeUndefined();
    const again = await pay(signed, restored);
    expect([again.text, again.headers.get("x-idempotent-replay")]).toEqual([answer.text, "true"]);
    await chargedOnce(base.chain, signed);
  });

  test("A header is refused in at most five calls if the chain shows no payment", async () => {
    const signed = await valid(120n);
    await base.pass(3);
    const { answer, calls } = await counted(() => pay(signed));
    expect(expectPaymentRequired(answer)).toMatch(/^The authorization expired at .*; it is now /);
    expect(total(calls)).toBeLessThanOrEqual(CALLS_A_REQUEST);
    expect(await rowOf(signed)).toBeNull();
  });

  test("A header gets 503 while one node has not seen its payment, and its result once the nodes agree", async () => {
    const before = await base.chain.client.getBlockNumber();
    const signed = await valid(120n);
    await broadcast(base.chain, signed);
    await base.pass(3);
    const late = viewAt({ head: before, safe: before, finalized: before - 1n });
    let readings = 0;
    const isReading = ({ method, params }: Call) =>
      method === "eth_call" && JSON.stringify(params).includes(payer.address.slice(2).toLowerCase());
    base.become((call, pass) => (isReading(call) && readings++ === 0 ? late(call, pass) : pass(call)));
    expectProblem(await pay(signed, restored), 503, "payment_pending");
    expect(readings).toBe(3);
    base.become(null);
    expect((await pay(signed, restored)).status).toBe(200);
    await chargedOnce(base.chain, signed);
  });

  test("A header with a malformed body gets 400 and not a new 402, because it may have paid", async () => {
    const signed = await signPayment(payer, { value: PRICES.score, validBefore: base.unixNow() + 120n });
    await broadcast(base.chain, signed);
    await base.pass(3);
    expectProblem(await post(`${restored.url}/score`, v2(signed), "[1]"), 400, "malformed_request");
  });

  test("A header with a forged signature is refused without a lookup", async () => {
    const signed = await valid(120n);
    await base.pass(3);
    const { answer, calls } = await counted(() => pay({ ...signed, signature: altered(signed.signature) }));
    expect(expectPaymentRequired(answer)).toMatch(/expired/);
    expect(total(calls)).toBeLessThanOrEqual(1);
  });

  test("A header gets 503 while the chain is unreachable, and its result afterwards", async () => {
    const signed = await valid(120n);
    await broadcast(base.chain, signed);
    await base.pass(3);
    base.become(async () => null);
    expectProblem(await pay(signed, restored), 503, "payment_pending");
    base.become(null);
    expect((await pay(signed, restored)).status).toBe(200);
  });
});

describe("A halt of the chain", () => {
  test("An authorization that becomes valid after the last block gets 503 during the halt and is accepted afterwards", async () => {
    base.halt();
    await base.pass(33);
    const signed = await signPayment(payer, {
      validAfter: base.unixNow() - 60n,
      validBefore: base.unixNow() + 3_600n,
    });
    const answer = await pay(signed);
    expectProblem(answer, 503, "not_available");
    expect(answer.body.detail).toMatch(/not valid until \S+; the chain is at .* Nothing was charged/);
    expect([answer.headers.has("retry-after"), await rowOf(signed)]).toEqual([true, null]);
    await base.resume();
    passTime(HEAD_REMEMBERED_MS);
    expect((await pay(signed)).status).toBe(200);
    await chargedOnce(base.chain, signed);
  });

  test("The halted chain's clock does not reopen a window that has closed by ours", async () => {
    const signed = await valid(120n);
    base.halt();
    await base.pass(33);
    expect(expectPaymentRequired(await pay(signed))).toMatch(/expired/);
    await base.resume();
    expect(await rowOf(signed)).toBeNull();
    await nothingCharged(base.chain, payer);
  });
});
