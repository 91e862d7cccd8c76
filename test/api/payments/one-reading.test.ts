import { toFunctionSelector } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { beforeEach, expect, test } from "vitest";
import { ERC1271 } from "../../../api/platform/chain/signatures.ts";
import { eachNetwork } from "../../../api/platform/networks.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { startFaultyNode, stoppedAt } from "../../support/chain/nodes.ts";
import { replyTo } from "../../support/chain/rpc.ts";
import { forFile } from "../../support/for-file.ts";
import { expectPaymentRequired, expectProblem } from "../../support/payments/expectations.ts";
import { chargedOnce, nothingCharged } from "../../support/payments/on-chain.ts";
import { post, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";
import { deployWallet } from "../../support/payments/wallets.ts";
import { startService } from "../../support/service/service.ts";

// A lagging node shows an old state, so a single reading must not refuse a payment permanently.

const chain = await forFile(startTestChain());
// anvil knows the state of loaded blocks only at its head.
await chain.mine(2);
const node = await forFile(startFaultyNode(chain));
const rpcUrls = eachNetwork(() => node.url);
const service = await forFile(startService({ chain, config: { rpcUrls } }));
const basic = `${service.url}/test/basic`;
const SIGNED = toFunctionSelector(ERC1271[0]);
/** Shorter than the time between two readings. */
const LAG_MS = 500;

beforeEach(() => node.become(null));

async function freshWallet() {
  const owner = privateKeyToAccount(generatePrivateKey());
  const { address } = await deployWallet(chain, owner.address);
  await chain.fund(address, 10_000_000n);
  return { owner, address };
}

/** Answers calls that mention `text` as of an older block, for `LAG_MS` from the first such call. */
function lagsAbout(text: string, block: bigint): void {
  const behind = stoppedAt(block);
  let since: number | null = null;
  node.become((call, pass) => {
    if (!JSON.stringify(call).toLowerCase().includes(text.slice(2).toLowerCase())) return pass(call);
    since ??= performance.now();
    return performance.now() - since < LAG_MS ? behind(call, pass) : pass(call);
  });
}

test("A fresh smart wallet can pay although the first reading shows no code", async () => {
  const before = await chain.client.getBlockNumber();
  const { owner, address } = await freshWallet();
  const signed = await signPayment(owner, { from: address });
  lagsAbout(address, before);
  expect((await post(basic, v2(signed))).status).toBe(200);
  await chargedOnce(chain, signed);
});

test("A fresh smart wallet can pay although the node never shows its code", async () => {
  const { owner, address } = await freshWallet();
  const signed = await signPayment(owner, { from: address });
  node.become(async (call, pass) => (call.method === "eth_getCode" ? replyTo(call, "0x") : pass(call)));
  expect((await post(basic, v2(signed))).status).toBe(200);
  await chargedOnce(chain, signed);
});

test("A newly funded wallet can pay although the first reading shows no balance", async () => {
  const before = await chain.client.getBlockNumber();
  const payer = await newPayer(chain);
  const signed = await signPayment(payer);
  lagsAbout(payer.address, before);
  expect((await post(basic, v2(signed))).status).toBe(200);
  await chargedOnce(chain, signed);
});

test("A payment gets 503 when the second reading fails, and the same header pays later", async () => {
  const { owner, address } = await freshWallet();
  const signed = await signPayment(owner, { from: address });
  node.become(async (call, pass) => {
    if (call.method === "eth_getCode") return replyTo(call, "0x");
    return JSON.stringify(call).includes(SIGNED.slice(2)) ? null : pass(call);
  });
  const waiting = await post(basic, v2(signed));
  expectProblem(waiting, 503, "payment_pending");
  expect(waiting.headers.get("retry-after")).not.toBeNull();
  await nothingCharged(chain, address);
  node.become(null);
  expect((await post(basic, v2(signed))).status).toBe(200);
  await chargedOnce(chain, signed);
});

test("A forged signature is refused after exactly three readings", async () => {
  const { owner, address } = await freshWallet();
  const stranger = privateKeyToAccount(generatePrivateKey());
  const signed = await signPayment(owner, { from: address });
  const forged = await signPayment(stranger, signed.authorization);
  let readings = 0;
  node.become((call, pass) => {
    if (JSON.stringify(call).includes(SIGNED.slice(2))) readings++;
    return pass(call);
  });
  expect(expectPaymentRequired(await post(basic, v2(forged)))).toMatch(/is not the payer's/);
  expect(readings).toBe(3);
  await nothingCharged(chain, address);
});
