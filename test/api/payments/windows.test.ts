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

/** A payment that no journal knows: what is looked at before it is taken or refused, and what that costs. */

const DAY = 86_400n;
const HEAD_REMEMBERED_MS = 501;
/** The head, and what a look at one payment may cost. */
const CALLS_A_REQUEST = 5;

/** Its nodes agree: what they say of an account that was funded a moment ago is not what is tested here. */
const base = await forFile(startBaseLike({ profile: { ...BASE, backends: [{ lagMs: 0 }] } }));
/** A moment at which the services' clock stands still. */
let stopped: Date | null = null;
const now = () => stopped ?? base.now();
const start = () => startService({ chain: base.chain, now, jobs: false, config: { rpcUrls: base.rpcUrls } });
const service = await forFile(start());
/** Whatever was taken in meanwhile, this one's journal has lost. */
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

/** The answer, with the calls that it cost a service that remembers no head. */
async function counted<T>(ask: () => Promise<T>): Promise<{ answer: T; calls: Readonly<Record<string, number>> }> {
  passTime(HEAD_REMEMBERED_MS);
  base.calls.reset();
  return { answer: await ask(), calls: base.calls.byMethod() };
}

const total = (calls: Readonly<Record<string, number>>) => Object.values(calls).reduce((sum, count) => sum + count, 0);

describe("an authorization may be valid for 24 hours from its arrival", () => {
  test("and not a second longer: 402 that says so, nothing stored, nothing asked of the chain", async () => {
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

describe("nobody makes us ask the chain for nothing", () => {
  test("a signature that is not the payer's costs one call for each reading", async () => {
    const signed = await valid(120n);
    const forged = { ...signed, signature: altered(signed.signature) };
    const { answer, calls } = await counted(() => pay(forged));
    expect(expectPaymentRequired(answer)).toMatch(/signature is not the payer's/);
    expect(total(calls)).toBeLessThanOrEqual(3);
  });

  test("terms that are not ours cost none, however they are signed", async () => {
    const cheap = await signPayment(payer, { value: 1n, validBefore: base.unixNow() + 120n });
    for (const signed of [cheap, { ...cheap, signature: altered(cheap.signature) }]) {
      const { answer, calls } = await counted(() => pay(signed));
      expect(expectPaymentRequired(answer)).toMatch(/must be for exactly/);
      expect(calls).toEqual({});
    }
  });

  test("a body that does not fit costs none", async () => {
    const signed = await signPayment(payer, { value: PRICES.score, validBefore: base.unixNow() + 120n });
    const { answer, calls } = await counted(() => post(`${service.url}/score`, v2(signed), "[1]"));
    expectProblem(answer, 400, "malformed_request");
    expect(calls).toEqual({});
  });
});

/** Of its answer, what is not the service's own signature. */
const settledBy = ({ headers }: Answer) => {
  const { extensions: _, ...settled } = decodePaymentResponseHeader(headers.get("payment-response") ?? "");
  return settled;
};

describe("a header whose window has closed", () => {
  test("and that no row knows is looked for on the chain: paid, it gets its result, once", async () => {
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

  test("is refused when the chain shows no payment, in few calls", async () => {
    const signed = await valid(120n);
    await base.pass(3);
    const { answer, calls } = await counted(() => pay(signed));
    expect(expectPaymentRequired(answer)).toMatch(/^The authorization expired at .*; it is now /);
    expect(total(calls)).toBeLessThanOrEqual(CALLS_A_REQUEST);
    expect(await rowOf(signed)).toBeNull();
  });

  test("is not refused on the word of one node that has not seen it: 503, and its result once nodes agree", async () => {
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

  test("with a body that does not fit is told so, and not to sign again: it may have paid", async () => {
    const signed = await signPayment(payer, { value: PRICES.score, validBefore: base.unixNow() + 120n });
    await broadcast(base.chain, signed);
    await base.pass(3);
    expectProblem(await post(`${restored.url}/score`, v2(signed), "[1]"), 400, "malformed_request");
  });

  test("is refused without a look when somebody else signed it", async () => {
    const signed = await valid(120n);
    await base.pass(3);
    const { answer, calls } = await counted(() => pay({ ...signed, signature: altered(signed.signature) }));
    expect(expectPaymentRequired(answer)).toMatch(/expired/);
    expect(total(calls)).toBeLessThanOrEqual(1);
  });

  test("is neither refused nor taken while the chain cannot be read", async () => {
    const signed = await valid(120n);
    await broadcast(base.chain, signed);
    await base.pass(3);
    base.become(async () => null);
    expectProblem(await pay(signed, restored), 503, "payment_pending");
    base.become(null);
    expect((await pay(signed, restored)).status).toBe(200);
  });
});

describe("while the chain stands still", () => {
  test("an authorization that began after its last block waits for it: 503, and the same header is taken then", async () => {
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

  test("its own time does not reopen a window that our clock has seen closing", async () => {
    const signed = await valid(120n);
    base.halt();
    await base.pass(33);
    expect(expectPaymentRequired(await pay(signed))).toMatch(/expired/);
    await base.resume();
    expect(await rowOf(signed)).toBeNull();
    await nothingCharged(base.chain, payer);
  });
});
