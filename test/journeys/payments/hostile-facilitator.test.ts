import { randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { LocalAccount } from "viem";
import { expect, test } from "vitest";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { serveHttp } from "../../support/http-server.ts";
import { expectNoSignatureAnywhere, expectProblem } from "../../support/payments/expectations.ts";
import { type Conduct, LIAR, respond, startFacilitator } from "../../support/payments/facilitator.ts";
import { chargedOnce, nothingCharged, settlements, submit } from "../../support/payments/on-chain.ts";
import { PRICES } from "../../support/payments/prices.ts";
import { type Answer, send, v2 } from "../../support/payments/requests.ts";
import { newPayer, type Signed, signPayment } from "../../support/payments/signing.ts";
import { startService } from "../../support/service/service.ts";
import { waitUntil } from "../../support/wait-until.ts";

/** A thousand times the number of bytes that the service may read. */
const ENDLESS_BYTES = 64 * 1024 * 1_000;
const LIMIT = 90_000;

const payers: LocalAccount[] = [];
/** Every response to a client in this file. */
const responses: Answer[] = [];

const chain = await forFile(startTestChain());
const facilitator = await forFile(startFacilitator(chain));
const service = await forFile(
  startService({ chain, patienceMs: 1_500, config: { facilitator: { remote: facilitator.url } } }),
);
for (let i = 0; i < 17; i++) payers.push(await newPayer(chain));

function aPayer(): LocalAccount {
  const payer = payers.pop();
  if (payer === undefined) throw new Error("more tests than funded payers");
  return payer;
}

async function buy(signed: Signed, signal?: AbortSignal): Promise<Answer> {
  const url = `${service.url}/test/basic`;
  const answer = await send(url, { method: "POST", headers: v2(signed), ...(signal && { signal }) });
  responses.push(answer);
  return answer;
}

function expectToWait(answer: Answer): void {
  expectProblem(answer, 503, "payment_pending");
  expect(answer.body.detail).toMatch(/Do not sign again; send the same header again/);
  expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
}

const honest: Conduct = async (signed, answer) =>
  respond(answer, 200, { success: true, transaction: await facilitator.settle(signed) });

/** Sends the same header until the result arrives. Only 503s may come before it. */
async function result(signed: Signed): Promise<Answer> {
  for (let tries = 0; tries < 5; tries++) {
    const answer = await buy(signed);
    if (answer.status === 200) return answer;
    expectToWait(answer);
  }
  throw new Error("no result after five requests");
}

/** Expects the lie to buy and charge nothing, and the same header to buy once from an honest facilitator. */
async function expectToBuyNothing(signed: Signed, conduct: Conduct): Promise<Answer> {
  facilitator.treat(signed, conduct);
  expectToWait(await buy(signed));
  expect(facilitator.handed.get(signed.authorization.nonce)).toBe(1);
  const paid = async () => (await settlements(chain, signed.authorization.from)).map(({ nonce }) => nonce);
  expect(await paid()).not.toContain(signed.authorization.nonce);
  facilitator.treat(signed, honest);
  const answer = await result(signed);
  expect((await paid()).filter((nonce) => nonce === signed.authorization.nonce)).toHaveLength(1);
  const replay = await result(signed);
  expect([replay.text, replay.headers.get("x-idempotent-replay")]).toEqual([answer.text, "true"]);
  return answer;
}

/** Expects the client to get its result once, whatever the facilitator reports about a transfer that it broadcast. */
async function expectToBuyOnce(signed: Signed, conduct: Conduct): Promise<void> {
  facilitator.treat(signed, conduct);
  expect((await result(signed)).body).toMatchObject({
    wallet: signed.authorization.from.toLowerCase(),
    verdict: "pass",
  });
  await chargedOnce(chain, signed);
}

const success =
  (transaction: string): Conduct =>
  (_, answer) =>
    respond(answer, 200, { success: true, transaction, network: "eip155:8453", note: LIAR });

const cutShort: boolean[] = [];

/** Writes until the service hangs up, or to an end that must not be reached. */
const endless: Conduct = async (_, answer) => {
  const chunk = Buffer.alloc(32 * 1024, LIAR);
  const chunks = function* () {
    for (let sent = 0; sent < ENDLESS_BYTES; sent += chunk.length) yield chunk;
  };
  const written = pipeline(Readable.from(chunks()), answer.writeHead(200, { "content-type": "application/json" }));
  cutShort.push(
    await written.then(
      () => false,
      () => true,
    ),
  );
};

// The longest test is first, so that the others run concurrently.
test.concurrent(
  "If a facilitator broadcasts without responding, a client that hung up gets its certificate with the same header",
  async () => {
    const signed = await signPayment(aPayer());
    const broadcast = Promise.withResolvers<void>();
    facilitator.treat(signed, async (given) => {
      await facilitator.settle(given);
      broadcast.resolve();
    });
    const impatient = new AbortController();
    const hungUp = buy(signed, impatient.signal).catch((error: Error) => error.name);
    await broadcast.promise;
    impatient.abort();
    expect(await hungUp).toBe("AbortError");
    expect((await result(signed)).body).toMatchObject({ verdict: "pass" });
    await chargedOnce(chain, signed);
    expect(facilitator.handed.get(signed.authorization.nonce)).toBe(1);
  },
  LIMIT,
);

const PENDING = { success: false, errorReason: "settlement_pending", transaction: `0x${"cd".repeat(32)}` };

const LIES: readonly (readonly [string, Conduct])[] = [
  ["claims a settlement without a broadcast", success(`0x${"ab".repeat(32)}`)],
  ["returns a 500", (_, answer) => respond(answer, 500, { error: LIAR })],
  ["returns random bytes", (_, answer) => answer.writeHead(200).end(randomBytes(4_096))],
  ["hangs up without a response", (_, answer) => answer.destroy()],
  ["asks the client to pay again", (_, answer) => respond(answer, 402, { error: LIAR })],
  ["reports a pending settlement with an unknown transaction", (_, answer) => respond(answer, 200, PENDING)],
];

test.concurrent.each(LIES)(
  "A facilitator that %s charges nothing and leads to a 503, and the same header buys once later",
  async (_, lie) => {
    const signed = await signPayment(aPayer());
    await expectToBuyNothing(signed, lie);
    await chargedOnce(chain, signed);
  },
  LIMIT,
);

test.concurrent(
  "An endless response is cut off",
  async () => {
    const signed = await signPayment(aPayer());
    await expectToBuyNothing(signed, endless);
    await chargedOnce(chain, signed);
    expect(await waitUntil(() => cutShort.length === 1, 20_000)).toBe(true);
    expect(cutShort).toEqual([true]);
    const failures = service.logged.filter(
      (line) => line.includes(signed.authorization.nonce) && line.includes("the facilitator reported a failure"),
    );
    expect(failures).toEqual([]);
  },
  LIMIT,
);

test.concurrent(
  "A redirect is not followed, so no other server gets the payment",
  async () => {
    let asked = 0;
    const elsewhere = await serveHttp((_, answer) => {
      asked++;
      respond(answer, 200, { success: true });
    });
    try {
      const location = `${elsewhere.url}/settle`;
      const signed = await signPayment(aPayer());
      await expectToBuyNothing(signed, (_, answer) => answer.writeHead(307, { location }).end());
      await chargedOnce(chain, signed);
      expect(asked).toBe(0);
    } finally {
      elsewhere.stop();
    }
  },
  LIMIT,
);

test.concurrent(
  "The hash of another payment's settlement buys nothing",
  async () => {
    const [mine, other] = [await signPayment(aPayer()), await signPayment(aPayer())];
    const transaction = await facilitator.settle(other);
    const { body } = await expectToBuyNothing(mine, success(transaction));
    await chargedOnce(chain, mine);
    const [settled] = await settlements(chain, mine.authorization.from);
    expect(body).toMatchObject({
      wallet: mine.authorization.from.toLowerCase(),
      settlement: { transaction: settled?.transaction },
    });
    expect(settled?.transaction).not.toBe(transaction);
  },
  LIMIT,
);

test.concurrent(
  "Another authorization of the payer, broadcast instead, does not buy this payment's product",
  async () => {
    const payer = aPayer();
    const [mine, dearer] = [await signPayment(payer), await signPayment(payer, { value: PRICES.suite })];
    const { body } = await expectToBuyNothing(mine, async (_, answer) =>
      success(await facilitator.settle(dearer))(mine, answer),
    );
    const paid = await settlements(chain, payer.address);
    expect(paid.map(({ nonce, value }) => [nonce, value])).toEqual([
      [dearer.authorization.nonce, PRICES.suite],
      [mine.authorization.nonce, PRICES.basic],
    ]);
    expect(body).toMatchObject({ settlement: { transaction: paid[1]?.transaction } });
  },
  LIMIT,
);

const UNTRUE: readonly (readonly [string, Conduct])[] = [
  ["reports a failure", (_, answer) => respond(answer, 200, { success: false, errorReason: LIAR, transaction: "" })],
  ["returns a 500", (_, answer) => respond(answer, 500, { error: LIAR })],
  ["names another transaction", success(`0x${"cd".repeat(32)}`)],
  ["hangs up", (_, answer) => answer.destroy()],
];

test.concurrent.each(UNTRUE)(
  "If a facilitator broadcasts and %s, the client gets its certificate and is charged once",
  async (_, lie) => {
    const signed = await signPayment(aPayer());
    await expectToBuyOnce(signed, async (given, answer) => {
      await facilitator.settle(given);
      return lie(given, answer);
    });
    expect(facilitator.handed.get(signed.authorization.nonce)).toBe(1);
  },
  LIMIT,
);

test.concurrent(
  "A facilitator that broadcasts twice charges once",
  async () => {
    const signed = await signPayment(aPayer());
    const second: string[] = [];
    await expectToBuyOnce(signed, async (given, answer) => {
      await facilitator.settle(given);
      second.push(await settleAgain(given));
      return respond(answer, 200, { success: true });
    });
    expect(second).toEqual(["reverted"]);
  },
  LIMIT,
);

/** Sends a second transaction with the same authorization, from another sender. */
const settleAgain = async (signed: Signed): Promise<string> =>
  (await submit(chain, signed, { account: devAccount(1), gas: 200_000n })).status;

test("Every client gets a 200 or a 503, and the facilitator's texts and all signatures stay secret", async () => {
  expect(responses.length).toBeGreaterThan(0);
  expect([...new Set(responses.map(({ status }) => status))].sort()).toEqual([200, 503]);
  expect([...responses.map(({ text }) => text), ...service.logged].filter((text) => text.includes(LIAR))).toEqual([]);
  await expectNoSignatureAnywhere(service);
  for (const payer of payers) await nothingCharged(chain, payer);
});
