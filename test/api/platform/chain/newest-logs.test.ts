import { createPublicClient, http } from "viem";
import { afterEach, expect, test } from "vitest";
import { createNewestLogs } from "../../../../api/platform/chain/authorizations.ts";
import { createLogReader } from "../../../../api/platform/chain/logs.ts";
import type { Expected } from "../../../../api/platform/chain/view.ts";
import type { Address } from "../../../../api/platform/wallet.ts";
import { startBaseLike } from "../../../support/base-like/base-like.ts";
import { BASE as PROFILE } from "../../../support/base-like/profiles.ts";
import { unreachable } from "../../../support/chain/nodes.ts";
import { forFile } from "../../../support/for-file.ts";
import { broadcast } from "../../../support/payments/on-chain.ts";
import { BASE, newPayer, type Signed, signPayment } from "../../../support/payments/signing.ts";

const OVERLAP = 8;
const NEWEST = 300;

const base = await forFile(startBaseLike({ profile: { ...PROFILE, backends: [{ lagMs: 0 }] } }));
const { chain } = base;
const payer = await newPayer(chain);
afterEach(() => base.become(null));

/** Creates a reader without any cached logs. */
function begin(mostBlocks = 10_000) {
  const client = createPublicClient({ transport: http(base.url, { retryCount: 0 }), cacheTime: 0 });
  return createNewestLogs(createLogReader({ client, mostBlocks }), BASE.usdc.address);
}
const sign = () => signPayment(payer, { validBefore: base.unixNow() + 7_200n });
const headNumber = async () => Number(await chain.client.getBlockNumber());
const expectedOf = ({ authorization: { from, to, ...terms } }: Signed, fromBlock: number): Expected => ({
  ...terms,
  payer: from.toLowerCase() as Address,
  payTo: to,
  fromBlock,
});
const logCalls = () => base.calls.byMethod().eth_getLogs ?? 0;

test("One call finds several settlements of several concurrent lookups", async () => {
  const newestLogs = begin();
  const [early, late, never] = [await sign(), await sign(), await sign()];
  const at = await headNumber();
  const first = await broadcast(chain, early);
  await base.pass(1);
  const middle = await headNumber();
  const second = await broadcast(chain, late);
  const head = { number: await headNumber(), time: base.unixNow() };
  base.calls.reset();
  const asked = [expectedOf(late, middle), expectedOf(never, middle), expectedOf(early, at)];
  const seen = await Promise.all(asked.map((one) => newestLogs(one, head)));
  expect(seen).toMatchObject([
    { nonce: "paid", settlement: { transaction: second, block: middle + 1 }, final: false },
    null,
    { nonce: "paid", settlement: { transaction: first, block: at + 1 }, final: false },
  ]);
  expect(logCalls()).toBe(1);
});

test("A settlement lags found by a node slightly behind the head recorded recorded the arrival", async () => {
  const signed = await sign();
  const transaction = await broadcast(chain, signed);
  const block = await headNumber();
  const head = { number: block, time: base.unixNow() };
  expect(await begin()(expectedOf(signed, block + OVERLAP), head)).toMatchObject({ settlement: { transaction } });
});

test.each([
  [NEWEST, 10_000],
  [50, 50],
])(
  "A payment %i blocks back is not searched in the shared call if a call covers at most %i blocks",
  async (most, accepted) => {
    const signed = await sign();
    const transaction = await broadcast(chain, signed);
    const [number, time] = [await headNumber(), base.unixNow()];
    const newestLogs = begin(accepted);
    base.calls.reset();
    expect(await newestLogs(expectedOf(signed, number - most + OVERLAP), { number, time })).toBeNull();
    expect(base.calls.total()).toBe(0);
    expect(await newestLogs(expectedOf(signed, number - most + OVERLAP + 1), { number, time })).toMatchObject({
      settlement: { transaction },
    });
  },
);

test("An unreachable node yields no result", async () => {
  const signed = await sign();
  await broadcast(chain, signed);
  const head = { number: await headNumber(), time: base.unixNow() };
  base.become(unreachable);
  expect(await begin()(expectedOf(signed, head.number), head)).toBeNull();
});
