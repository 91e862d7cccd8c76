import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { beforeEach, expect, test } from "vitest";
import { createChain } from "../../../api/platform/chain/chain.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { standingStillAt, startFaultyNode } from "../../support/chain/nodes.ts";
import { replyTo } from "../../support/chain/rpc.ts";
import { forFile } from "../../support/for-file.ts";
import { broadcast, chargedOnce } from "../../support/payments/on-chain.ts";
import { post, v2 } from "../../support/payments/requests.ts";
import { BASE, newPayer, signPayment } from "../../support/payments/signing.ts";
import { deployWallet } from "../../support/payments/wallets.ts";
import { startService } from "../../support/service/service.ts";

// The node that is asked first answers everything, and is wrong: the one after it is asked too.

const chain = await forFile(startTestChain());
// anvil knows the state of loaded blocks only at its head.
await chain.mine(2);
const [first, second] = [await forFile(startFaultyNode(chain)), await forFile(startFaultyNode(chain))];
const urls = [first.url, second.url];
const service = await forFile(
  startService({ chain, config: { rpcUrls: { "eip155:8453": urls, "eip155:84532": chain.rpcUrl } } }),
);
const basic = `${service.url}/test/basic`;

beforeEach(() => first.become(null));

test("a fresh smart wallet pays although the first node stands still at a block before it", async () => {
  const before = await chain.client.getBlockNumber();
  const owner = privateKeyToAccount(generatePrivateKey());
  const { address } = await deployWallet(chain, owner.address);
  await chain.fund(address, 10_000_000n);
  const signed = await signPayment(owner, { from: address });
  first.become(standingStillAt(before));
  expect((await post(basic, v2(signed))).status).toBe(200);
  await chargedOnce(chain, signed);
});

test("an account's payment is charged once and served although the first node stands still", async () => {
  const before = await chain.client.getBlockNumber();
  const signed = await signPayment(await newPayer(chain));
  first.become(standingStillAt(before));
  expect((await post(basic, v2(signed))).status).toBe(200);
  await chargedOnce(chain, signed);
});

test("a settlement is found although the first node shows no logs", async () => {
  const reader = createChain(BASE.id, { rpcUrl: urls, logBlockRange: 1_000 });
  const head = await chain.client.getBlockNumber();
  const signed = await signPayment(await newPayer(chain));
  const transaction = await broadcast(chain, signed);
  first.become(async (call, pass) => (call.method === "eth_getLogs" ? replyTo(call, []) : pass(call)));
  const { authorization } = signed;
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  const expected = { payer: from.toLowerCase(), payTo: to.toLowerCase(), nonce, value, validAfter, validBefore };
  const look = () => reader.look({ ...expected, fromBlock: Number(head) } as Parameters<typeof reader.look>[0]);
  await expect
    .poll(() => look().catch(() => null), { timeout: 5_000 })
    .toMatchObject({ nonce: "paid", settlement: { transaction } });
});
