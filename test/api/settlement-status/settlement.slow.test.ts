import { type Hex, type LocalAccount, numberToHex } from "viem";
import { afterEach, expect, test } from "vitest";
import type { Authorization } from "../../../api/platform/chain/view.ts";
import type { Address } from "../../../api/platform/wallet.ts";
import { startBaseLike } from "../../support/base-like/base-like.ts";
import { pruned, viewAt } from "../../support/base-like/view.ts";
import { reorganize } from "../../support/chain/blocks.ts";
import { refuse } from "../../support/chain/rpc.ts";
import { eventually } from "../../support/eventually.ts";
import { forFile } from "../../support/for-file.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { broadcast, cancel, nothingCharged } from "../../support/payments/on-chain.ts";
import { type Answer, post, send, v2 } from "../../support/payments/requests.ts";
import { altered, newPayer, randomNonce, type Signed, signPayment } from "../../support/payments/signing.ts";
import { startService } from "../../support/service/service.ts";
import { statementsOf, wire } from "../../support/settlement-status/statements.ts";

// The status of an authorization, on a chain like Base whose nodes lag.

const base = await forFile(startBaseLike());
const { chain } = base;
const plan = { chain, now: base.now, jobs: false, config: { rpcUrls: base.rpcUrls } };
const service = await forFile(startService(plan));
const { buy, statementOf } = statementsOf(base, service);
afterEach(() => base.become(null));

/** A payee that the service does not know. */
const STRANGER: Address = "0x00000000000000000000000000000000000a11ce";
const FINAL_MINUTES = 16;

const sign = async (fields: Partial<Authorization> = {}) => {
  const payer = await newPayer(chain);
  const signed = await signPayment(payer, { to: STRANGER, validBefore: base.unixNow() + 120n, ...fields });
  return { payer, signed };
};

const ask = ({ authorization: { from, nonce } }: Signed, more: Record<string, string> = {}, at = service) =>
  send(`${at.url}/settlement?${new URLSearchParams({ network: "base", from, nonce, ...more })}`);

const before = ({ authorization: { validBefore } }: Signed) => ({ valid_before: String(validBefore) });

/** Repeats the request until the status matches, because nodes lag and a search continues where it stopped. */
async function untilStatus(question: () => Promise<Answer>, status: string): Promise<Answer> {
  let answer = await question();
  await eventually(async () => {
    answer = await question();
    return answer.body.status;
  }, status);
  return answer;
}

test("A payment to the service is found in its own database, even without logs", async () => {
  const payer = await newPayer(chain);
  await base.caughtUp();
  const signed = await signPayment(payer, { validBefore: base.unixNow() + 120n });
  await eventually(async () => (await post(`${service.url}/test/basic`, v2(signed))).status, 200);
  base.become(async (call, pass) => (call.method === "eth_getLogs" ? null : pass(call)));
  await untilStatus(() => ask(signed), "settled");
});

interface Signer {
  readonly payer: LocalAccount;
  readonly signed: Signed;
}

/** Expects statements that cannot be misread and that state what they depend on. */
async function expectStatements({
  paid,
  unused,
  canceled,
  transaction,
}: Record<"paid" | "unused" | "canceled", Signer> & {
  readonly transaction: Hex;
}) {
  const { signature } = unused.signed;
  const proven = await statementOf(await buy({ authorization: wire(unused.signed), signature }));
  expect(proven.answer.body).toMatchObject({
    signature: { verified: true, primary_type: "TransferWithAuthorization" },
    conditional_on: null,
    settlement: { status: "expired", final: true, ...before(unused.signed) },
  });
  expect(proven.answer.text).not.toContain(signature.slice(2, 66));
  expect((await proven.check(wire(unused.signed))).valid).toBe(true);
  expect((await proven.check(wire(paid.signed))).valid).toBe(false);

  const [settled, over, sooner] = await Promise.all([
    buy({ network: "base", authorization: wire(paid.signed) }).then(statementOf),
    buy({ authorization: wire(canceled.signed) }).then(statementOf),
    buy({ authorization: { ...wire(paid.signed), validBefore: "1000" } }).then(statementOf),
  ]);
  expect(settled.answer.body).toMatchObject({
    conditional_on: "authorization.validBefore",
    settlement: { status: "settled", final: true, transaction },
  });
  expect(over.answer.body).toMatchObject({ settlement: { status: "canceled", final: true } });
  // The validBefore was never signed, and it had passed when the nonce was used.
  expect(sooner.answer.body).toMatchObject({
    conditional_on: "authorization.validBefore",
    settlement: { status: "expired", final: true, valid_before: "1000" },
  });
  for (const { check } of [settled, over, sooner]) expect(await check()).toMatchObject({ valid: true });

  for (const wrong of [altered(signature), paid.signed.signature]) {
    const refused = await buy({ authorization: wire(unused.signed), signature: wrong });
    expectProblem(refused.answer, 422, "unacceptable");
    await nothingCharged(chain, refused.payer);
  }
  const malformed = await buy({ authorization: { ...wire(unused.signed), value: 4 } });
  expectProblem(malformed.answer, 400, "malformed_request");
  await nothingCharged(chain, malformed.payer);
}

test("Every authorization has the status that the chain gives it, both before and after it is final", async () => {
  const [paid, old, third, unused, canceled] = await Promise.all(Array.from({ length: 5 }, () => sign()));
  if (!paid || !old || !third || !unused || !canceled) throw new Error("five were signed");
  expect((await ask(paid.signed, before(paid.signed))).body).toMatchObject({
    status: "pending",
    final: false,
    window: "open",
    network: "eip155:8453",
  });
  const transaction = await broadcast(chain, paid.signed);
  const hint = { transaction: await broadcast(chain, old.signed) };
  await broadcast(chain, third.signed);
  await cancel(chain, canceled.payer, canceled.signed);
  const transfer = { transaction, to: STRANGER, value: String(paid.signed.authorization.value) };
  const settled = await untilStatus(() => ask(paid.signed), "settled");
  expect(settled.body).toMatchObject({ final: false, ...transfer });
  expect(settled.headers.get("cache-control")).toBe("no-store");
  expect((await untilStatus(() => ask(canceled.signed, before(canceled.signed)), "canceled")).body.final).toBe(false);

  await base.pass(3);
  const closed = await untilStatus(() => ask(unused.signed, before(unused.signed)), "pending");
  expect(closed.body).toMatchObject({ window: "closed" });
  expect((await ask(unused.signed)).body).toMatchObject({ status: "pending", window: "unknown", valid_before: null });

  await base.pass(FINAL_MINUTES);
  const final = () => [ask(paid.signed), ask(canceled.signed), ask(unused.signed, before(unused.signed))] as const;
  await eventually(async () => (await Promise.all(final())).map(({ body }) => body.final), [true, true, true]);
  base.calls.reset();
  const [isPaid, isCanceled, isExpired] = await Promise.all(final());
  expect(isPaid.body).toMatchObject({ status: "settled", ...transfer });
  expect(isPaid.headers.get("cache-control")).toContain("immutable");
  expect(isCanceled.body).toMatchObject({ status: "canceled" });
  expect(isCanceled.body).not.toHaveProperty("value");
  expect(isExpired.body).toMatchObject({ status: "expired", ...before(unused.signed) });
  for (let times = 0; times < 20; times++) expect((await ask(paid.signed)).body).toEqual(isPaid.body);
  expect(base.calls.total()).toBe(0);

  await expectStatements({ paid, unused, canceled, transaction });

  // Like a provider with narrow ranges, where five calls do not cover these minutes.
  const narrow = await startService({ ...plan, config: { ...plan.config, logBlockRange: 50 } });
  try {
    const unfinished = await ask(old.signed, {}, narrow);
    expect(unfinished.body).toMatchObject({ status: "used", final: false, search: "unfinished" });
    expect(unfinished.body).not.toHaveProperty("transaction");
    // Another authorization's transaction proves nothing.
    expect((await ask(third.signed, hint, narrow)).body).toMatchObject({ status: "used" });
    expect((await ask(old.signed, hint, narrow)).body).toMatchObject({ status: "settled", final: true, ...hint });
    const byEnd = await ask(paid.signed, before(paid.signed), narrow);
    expect(byEnd.body).toMatchObject({ status: "settled", final: true, ...transfer });
    await untilStatus(() => ask(third.signed, {}, narrow), "settled");
  } finally {
    await narrow.stop();
  }

  // The payer signs another authorization with the nonce of an expired one.
  const { nonce } = unused.signed.authorization;
  const later = await signPayment(unused.payer, { to: STRANGER, nonce, validBefore: base.unixNow() + 120n });
  await broadcast(chain, later);
  await base.caughtUp();
  expect((await ask(unused.signed, before(unused.signed))).body).toMatchObject({ status: "expired" });
  const restarted = await startService({ ...plan, database: service.database });
  try {
    await untilStatus(() => ask(later, before(later), restarted), "settled");
    // Even after the nonce has paid for the other one, and after the first process is gone.
    expect((await ask(unused.signed, before(unused.signed), restarted)).body).toEqual(isExpired.body);
  } finally {
    await restarted.stop();
  }

  // Nodes that have pruned old data and return null or an error. Every third one has the data.
  const knowing = await startService({ ...plan, config: plan.config });
  try {
    base.become(pruned(3));
    const found = await ask(paid.signed, before(paid.signed), knowing);
    expect(found.body).toMatchObject({ status: "settled", ...transfer });
    base.become(null);
    await untilStatus(() => ask(paid.signed, before(paid.signed), knowing), "settled");
    expect((await ask(paid.signed, before(paid.signed), knowing)).body).toEqual(isPaid.body);
    // No node has the data: final facts are stored, and nothing else is guessed.
    base.become(pruned(Number.POSITIVE_INFINITY));
    expect((await ask(paid.signed, before(paid.signed), knowing)).body).toEqual(isPaid.body);
    for (const times of [1, 2, 3])
      expect([times, (await ask(canceled.signed, before(canceled.signed), knowing)).body.status]).toEqual([
        times,
        "used",
      ]);
    base.become(async (call, pass) =>
      call.method === "eth_getLogs" ? refuse(call, 4444, "pruned history unavailable") : pass(call),
    );
    expectProblem(await ask(third.signed, before(third.signed), knowing), 503, "not_available");
  } finally {
    base.become(null);
    await knowing.stop();
  }

  // One of two nodes is behind the final block.
  const head = await chain.client.getBlockNumber();
  const earlier = head - 520n;
  const stale = viewAt({ head: earlier, safe: earlier - 30n, finalized: earlier - 450n });
  const other = await startService({ ...plan, config: plan.config });
  try {
    let asked = 0;
    base.become((call, pass) => (asked++ % 2 === 0 ? stale(call, pass) : pass(call)));
    for (let times = 0; times < 3; times++)
      expect(["settled", "used", undefined]).toContain((await ask(paid.signed, {}, other)).body.status);
    base.become(null);
    await untilStatus(() => ask(paid.signed, {}, other), "settled");
  } finally {
    await other.stop();
  }
});

test("Addresses in any letter case and of contracts are accepted", async () => {
  const { usdc } = chain.network;
  for (const from of [usdc.address.toUpperCase().replace("0X", "0x"), "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"]) {
    const { body } = await send(`${service.url}/settlement?network=base&from=${from}&nonce=${randomNonce()}`);
    expect(body).toMatchObject({ status: "pending", from: usdc.address });
  }
});

test("Six hundred concurrent requests for different nonces cost a handful of calls", async () => {
  const nonceOf = (number: number): Hex => numberToHex(number, { size: 32 });
  base.calls.reset();
  const since = performance.now();
  const answers = await Promise.all(
    Array.from({ length: 600 }, (_, number) =>
      send(`${service.url}/settlement?network=base&from=${STRANGER}&nonce=${nonceOf(number)}`),
    ),
  );
  expect(new Set(answers.map(({ body }) => body.status))).toEqual(new Set(["pending"]));
  // About one call per second, plus the reads of the chain's position.
  expect(base.calls.total()).toBeLessThan(10 + (performance.now() - since) / 500);
});

test("While no node answers, the route returns a 503", async () => {
  base.become(async () => null);
  expectProblem(await ask({ authorization: { from: STRANGER, nonce: randomNonce() } } as Signed), 503, "not_available");
});

test("A settlement that a reorganization removes is pending again", async () => {
  const { signed } = await sign();
  await broadcast(chain, signed);
  await untilStatus(() => ask(signed), "settled");
  await reorganize(chain, 5, []);
  await base.pass(1);
  await untilStatus(() => ask(signed), "pending");
});
