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

/** A process that has not read anything yet. */
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

test("One call shows which of several payments have paid, and where", async () => {
  const newestLogs = begin();
  const [early, late, never] = [await sign(), await sign(), await sign()];
  const at = await headNumber();
  const first = await broadcast(chain, early);
  await base.pass(1);
  const between = await headNumber();
  const second = await broadcast(chain, late);
  const head = { number: await headNumber(), time: base.unixNow() };
  base.calls.reset();
  const asked = [expectedOf(late, between), expectedOf(never, between), expectedOf(early, at)];
  const seen = await Promise.all(asked.map((one) => newestLogs(one, head)));
  expect(seen).toMatchObject([
    { nonce: "paid", settlement: { transaction: second, block: between + 1 }, final: false },
    null,
    { nonce: "paid", settlement: { transaction: first, block: at + 1 }, final: false },
  ]);
  expect(logCalls()).toBe(1);
});

test("A payment is found on a node that lags a little behind the head recorded on arrival", async () => {
  const signed = await sign();
  const transaction = await broadcast(chain, signed);
  const block = await headNumber();
  const head = { number: block, time: base.unixNow() };
  expect(await begin()(expectedOf(signed, block + OVERLAP), head)).toMatchObject({ settlement: { transaction } });
});

test.each([
  [NEWEST, 10_000],
  [50, 50],
])("A payment that needs %i blocks is left to its own search if a call covers at most %i", async (most, accepted) => {
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
});

test("A node that does not answer decides nothing", async () => {
  const signed = await sign();
  await broadcast(chain, signed);
  const head = { number: await headNumber(), time: base.unixNow() };
  base.become(unreachable);
  expect(await begin()(expectedOf(signed, head.number), head)).toBeNull();
});
