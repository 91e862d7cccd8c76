import { expect, test } from "vitest";
import { eachNetwork, MAIN_NETWORK } from "../../api/platform/networks.ts";
import { startTestChain } from "../support/chain/chain.ts";
import { askNode, serveNode } from "../support/chain/rpc.ts";
import { forFile } from "../support/for-file.ts";
import { chargedOnce, nothingCharged } from "../support/payments/on-chain.ts";
import { post, send, v2 } from "../support/payments/requests.ts";
import { newPayer, type Signed, signPayment } from "../support/payments/signing.ts";
import { startService } from "../support/service/service.ts";

// docs/drills.md, "A provider that bills out".

const PATIENT = { timeout: 30_000, interval: 200 };
const chain = await forFile(startTestChain());
const pass = askNode(chain.rpcUrl);

/** A provider that returns this status for every request while it is set. */
async function startProvider() {
  let status: number | null = null;
  const asked: string[] = [];
  const node = await forFile(
    serveNode({
      answer: pass,
      refuse: (calls) => {
        asked.push(...calls.map(({ method }) => method));
        return status === null ? null : { status, body: '{"error":"payment required: your plan has ended"}' };
      },
    }),
  );
  return {
    url: node.url,
    asked,
    become: (next: number | null) => {
      status = next;
    },
  };
}

test("With HTTP 402, 403, or 429 from the first of two providers, payments settle through the second", async () => {
  const [first, second] = [await startProvider(), await startProvider()];
  const rpcUrls = { ...eachNetwork(() => chain.rpcUrl), [MAIN_NETWORK]: [first.url, second.url] };
  const service = await forFile(startService({ chain, config: { rpcUrls } }));
  const buy = async () => {
    const signed = await signPayment(await newPayer(chain));
    expect((await post(`${service.url}/test/basic`, v2(signed))).status).toBe(200);
    await chargedOnce(chain, signed);
  };
  const nodes = async () => {
    const { chains } = (await send(`${service.url}/status`)).body as { chains: { nodes: { ok: boolean }[] }[] };
    return chains[0]?.nodes.map(({ ok }) => ok);
  };
  for (const status of [402, 403, 429]) {
    first.become(status);
    await buy();
    await expect.poll(nodes, PATIENT).toEqual([false, true]);
    // Only the health check still calls it, so no customer's request waits for it.
    const before = first.asked.length;
    await buy();
    expect(first.asked.slice(before).filter((method) => method !== "eth_chainId")).toEqual([]);
    first.become(null);
    await expect.poll(nodes, PATIENT).toEqual([true, true]);
  }
});

test("With HTTP 402, 403, or 429 from the only provider, nothing is charged, and the same header buys afterwards", async () => {
  const provider = await startProvider();
  const rpcUrls = eachNetwork(() => provider.url);
  const service = await forFile(startService({ chain, config: { rpcUrls } }));
  const pay = (signed: Signed) => post(`${service.url}/test/basic`, v2(signed));
  const sold = await signPayment(await newPayer(chain));
  expect((await pay(sold)).status).toBe(200);
  for (const status of [402, 403, 429]) {
    provider.become(status);
    const signed = await signPayment(await newPayer(chain));
    const refused = await pay(signed);
    expect(refused.status).toBe(503);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    await nothingCharged(chain, signed.authorization.from);
    // Everything that needs no chain is served, including a stored result.
    expect((await pay(sold)).status).toBe(200);
    expect((await send(`${service.url}/board`)).status).toBe(200);
    expect((await send(`${service.url}/status`)).body).toMatchObject({ ok: false });
    provider.become(null);
    await expect.poll(async () => (await pay(signed)).status, PATIENT).toBe(200);
    await chargedOnce(chain, signed);
  }
});
