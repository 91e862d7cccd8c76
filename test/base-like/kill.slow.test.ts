import { parseAbi } from "viem";
import { expect, test, vi } from "vitest";
import { STATEMENT_PRICE } from "../../api/settlement-status/statement-request.ts";
import { startChainLikeBase } from "../support/base-like/base-like.ts";
import { HALT_MINUTES } from "../support/base-like/profiles.ts";
import { eventually } from "../support/eventually.ts";
import { forFile } from "../support/for-file.ts";
import { expectProblem } from "../support/payments/expectations.ts";
import { broadcast, chargedOnce, nothingCharged } from "../support/payments/on-chain.ts";
import { type Answer, post, send, v2 } from "../support/payments/requests.ts";
import { newPayer, type Signed, signPayment, unixNow } from "../support/payments/signing.ts";
import { type ApiProcess, startApiStageOn } from "../support/service/api-process.ts";

// A process uses the real clock, so this chain starts two hours in the past and never gets ahead of it.

vi.setConfig({ testTimeout: 90_000 });

const stage = await forFile(startApiStageOn(startChainLikeBase(120)));
const { chain } = stage;
const { base } = chain;
/** One origin for all processes, so that their responses are identical. */
const start = () => stage.start({ url: base.url }, { BASE_URL: "http://localhost:8402" });
let api = await start();

test("A process killed during a halt, and again after the pool has dropped its transaction, still makes one charge and returns the result", async () => {
  const payer = await newPayer(chain);
  const signed = await signPayment(payer, { validBefore: unixNow() + 7_200n });
  const pay = (at: ApiProcess): Promise<Answer> => post(`${at.url}/test/basic`, v2(signed));
  const restart = async () => {
    await api.kill();
    await stage.endLeases();
    api = await start();
  };

  base.halt();
  const lost = pay(api).then(
    ({ status }) => status,
    () => "cut off",
  );
  await eventually(() => base.pool.waiting().length, 1);
  await base.pass(HALT_MINUTES);
  await restart();
  expect(await lost).toBe("cut off");
  await nothingCharged(chain, payer);

  base.pool.forget();
  const again = pay(api).catch(() => null);
  await eventually(() => base.pool.waiting().length, 1);
  await restart();
  expect(await again).toBeNull();
  await base.resume();
  let answer = await pay(api);
  for (; answer.status === 503; answer = await pay(api)) expectProblem(answer, 503, "payment_pending");
  expect(answer.status).toBe(200);
  await base.pass(16);
  const replay = await pay(api);
  expect([replay.status, replay.text]).toEqual([200, answer.text]);
  await chargedOnce(chain, signed);
});

const USED = parseAbi(["event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)"]);
const STRANGER = "0x00000000000000000000000000000000000a11ce";
const wire = ({ authorization }: Signed) =>
  Object.fromEntries(Object.entries(authorization).map(([name, value]) => [name, String(value)]));

/** Repeats the request until the response is not a 503. */
async function known(ask: () => Promise<Answer>): Promise<Answer> {
  let answer = await ask();
  await eventually(async () => {
    if (answer.status === 503) answer = await ask();
    return answer.status === 503;
  }, false);
  return answer;
}

test("Two processes report the same status and sell one statement per charge, even if one is killed", async () => {
  const other = await start();
  const payer = await newPayer(chain);
  const window = { to: STRANGER, validBefore: base.unixNow() + 300n } as const;
  const [paid, unused] = [await signPayment(payer, window), await signPayment(payer, window)];
  const transaction = await broadcast(chain, paid);
  await base.pass(22);
  const ask = ({ authorization: { from, nonce, validBefore } }: Signed, at: ApiProcess) =>
    send(
      `${at.url}/settlement?${new URLSearchParams({ network: "base", from, nonce, valid_before: String(validBefore) })}`,
    );
  const both = () => Promise.all([ask(paid, api), ask(paid, other)]);
  await eventually(
    async () => (await both()).map(({ body: { status, final } }) => [status, final]),
    [
      ["settled", true],
      ["settled", true],
    ],
  );
  const [here, there] = await both();
  expect([here.body.transaction, there.text]).toEqual([transaction, here.text]);

  // A final fact found by one process needs no call in another.
  await eventually(async () => (await ask(unused, api)).body.status, "expired");
  const asked: string[] = [];
  base.become((call, pass) => {
    const text = JSON.stringify(call);
    if (text.includes(unused.authorization.nonce.slice(2))) asked.push(text);
    return pass(call);
  });
  expect((await ask(unused, other)).text).toBe((await ask(unused, api)).text);
  expect(asked).toEqual([]);
  base.become(null);

  const buyer = await newPayer(chain);
  const payment = () => signPayment(buyer, { value: STATEMENT_PRICE, validBefore: unixNow() + 7_200n });
  const body = JSON.stringify({ authorization: wire(unused), signature: unused.signature });
  const buy = (at: ApiProcess, signed: Signed) => post(`${at.url}/settlement`, v2(signed), body);
  const first = await payment();
  const [one, two] = await Promise.all([known(() => buy(api, first)), known(() => buy(other, first))]);
  expect([one.status, two.status, two.text]).toEqual([200, 200, one.text]);
  await chargedOnce(chain, first);

  const second = await payment();
  const cut = Promise.withResolvers<void>();
  base.become(async (call, pass) => {
    if (call.method !== "eth_sendRawTransaction") return pass(call);
    cut.resolve();
    return null;
  });
  const lost = buy(api, second).then(
    ({ status }) => status,
    () => "cut off",
  );
  await Promise.race([cut.promise, lost.then((status) => expect(status).toBe("cut off"))]);
  await api.kill();
  expect(await lost).toBe("cut off");
  base.become(null);
  await stage.endLeases();
  const bought = await known(() => buy(other, second));
  expect(bought.body).toMatchObject({ settlement: { status: "expired", final: true } });
  expect((await buy(other, second)).text).toBe(bought.text);
  const made = await chain.client.getContractEvents({
    address: chain.network.usdc.address,
    abi: USED,
    eventName: "AuthorizationUsed",
    args: { authorizer: buyer.address },
    fromBlock: 0n,
  });
  expect(made.map(({ args }) => args.nonce)).toEqual([first.authorization.nonce, second.authorization.nonce]);
});
