import { afterEach, expect, test } from "vitest";
import { startBaseLike } from "../../support/base-like/base-like.ts";
import { BASE, type Profile } from "../../support/base-like/profiles.ts";
import { refuse } from "../../support/chain/rpc.ts";
import { forFile } from "../../support/for-file.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { broadcast, chargedOnce } from "../../support/payments/on-chain.ts";
import { type Answer, post, send, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";
import { startService } from "../../support/service/service.ts";

// The RPC calls per payment lookup, for payments of any age and providers with narrow log ranges.

const NARROW: Profile = {
  ...BASE,
  backends: [{ lagMs: 0 }],
  logs: {
    ...BASE.logs,
    maxBlocks: 50n,
    // Infura's wording.
    tooManyBlocks: () => ({ code: -32_602, message: "range 9000 exceeds limit of 50" }),
    tooManyBlocksStatus: 413,
  },
};
const base = await forFile(startBaseLike({ profile: NARROW }));
const { chain } = base;
const plan = { chain, now: base.now, jobs: false, config: { rpcUrls: base.rpcUrls } };
const service = await forFile(startService(plan));
afterEach(() => base.become(null));

const CALLS_A_LOOK = 4;
/** The first call of a lookup reads the nonce's state. */
const LOG_CALLS = CALLS_A_LOOK - 1;

/** Returns the response and the RPC calls that it took, by method. */
async function counted(ask: () => Promise<Answer>) {
  base.calls.reset();
  const answer = await ask();
  return { answer, calls: base.calls.total(), methods: base.calls.byMethod() };
}

test("A payment that settled long ago is found with no more calls than a new one", async () => {
  const signed = await signPayment(await newPayer(chain), { validBefore: base.unixNow() + 120n });
  const pay = () => post(`${service.url}/test/basic`, v2(signed));
  // The service does not see that the payment settles.
  base.become(async (call, pass) =>
    call.method === "eth_getLogs" ? refuse(call, -32_000, "logs are unavailable") : pass(call),
  );
  expectProblem(await pay(), 503, "payment_pending");
  base.become(null);
  await chargedOnce(chain, signed);
  await base.pass(30);
  const { answer, calls } = await counted(pay);
  expect(answer.status).toBe(200);
  expect(calls).toBeLessThanOrEqual(CALLS_A_LOOK);
  await chargedOnce(chain, signed);
});

test("A payment that its payer settled long before it arrived is found step by step, even across a restart", async () => {
  const signed = await signPayment(await newPayer(chain), { validBefore: base.unixNow() + 43_200n });
  await broadcast(chain, signed);
  await base.pass(120);
  const pay = (at = service) => counted(() => post(`${at.url}/test/basic`, v2(signed)));
  for (let asked = 0; asked < 2; asked++) {
    const { answer, methods } = await pay();
    expectProblem(answer, 503, "payment_pending");
    expect(methods.eth_getLogs).toBeLessThanOrEqual(LOG_CALLS);
  }
  const restarted = await startService({ ...plan, database: service.database, config: { ...service.config } });
  try {
    let asked = await pay(restarted);
    for (let times = 0; times < 60 && asked.answer.status !== 200; times++) {
      expectProblem(asked.answer, 503, "payment_pending");
      expect(asked.methods.eth_getLogs).toBeLessThanOrEqual(LOG_CALLS);
      asked = await pay(restarted);
    }
    expect(asked.answer.status).toBe(200);
  } finally {
    await restarted.stop();
  }
  await chargedOnce(chain, signed);
});

test("Requests without a payment make no RPC calls", async () => {
  const { calls } = await counted(async () => {
    const answers = await Promise.all(
      service.mounted
        .filter(({ path }) => path !== "/status")
        .map(({ method, path }) => send(`${service.url}${path.replaceAll(/:\w+/g, "x")}`, { method })),
    );
    return answers[0] as Answer;
  });
  expect(calls).toBe(0);
});
