import { expect, test } from "vitest";
import { startTestChain } from "../../support/chain/chain.ts";
import { askNode, serveNode } from "../../support/chain/rpc.ts";
import { forFile } from "../../support/for-file.ts";
import { chargedOnce, nothingCharged } from "../../support/payments/on-chain.ts";
import { post, send, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";
import { startService } from "../../support/service/service.ts";

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

test.each([402, 403, 429])(
  "With HTTP %i from the first of two providers, payments settle through the second",
  async (status) => {
    const [first, second] = [await startProvider(), await startProvider()];
    const urls = [first.url, second.url];
    const rpcUrls = { "eip155:8453": urls, "eip155:84532": chain.rpcUrl };
    const service = await forFile(startService({ chain, config: { rpcUrls } }));
    first.become(status);
    for (let sale = 0; sale < 2; sale++) {
      const signed = await signPayment(await newPayer(chain));
      expect((await post(`${service.url}/test/basic`, v2(signed))).status).toBe(200);
      await chargedOnce(chain, signed);
    }
    const nodes = async () => {
      const { chains } = (await send(`${service.url}/status`)).body as { chains: { nodes: { ok: boolean }[] }[] };
      return chains[0]?.nodes.map(({ ok }) => ok);
    };
    await expect.poll(nodes, PATIENT).toEqual([false, true]);
    // Only the health check still calls it, so no customer's request waits for it.
    const before = first.asked.length;
    expect((await post(`${service.url}/test/basic`, v2(await signPayment(await newPayer(chain))))).status).toBe(200);
    expect(first.asked.slice(before).filter((method) => method !== "eth_chainId")).toEqual([]);
    first.become(null);
    await expect.poll(nodes, PATIENT).toEqual([true, true]);
  },
);

test.each([402, 403, 429])(
  "With HTTP %i from the only provider, nothing is charged, and the same header buys afterwards",
  async (status) => {
    const provider = await startProvider();
    const rpcUrls = { "eip155:8453": provider.url, "eip155:84532": provider.url };
    const service = await forFile(startService({ chain, config: { rpcUrls } }));
    const sold = await signPayment(await newPayer(chain));
    expect((await post(`${service.url}/test/basic`, v2(sold))).status).toBe(200);
    provider.become(status);
    const signed = await signPayment(await newPayer(chain));
    const refused = await post(`${service.url}/test/basic`, v2(signed));
    expect(refused.status).toBe(503);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    await nothingCharged(chain, signed.authorization.from);
    // Everything that needs no chain is served, including a stored result.
    expect((await post(`${service.url}/test/basic`, v2(sold))).status).toBe(200);
    expect((await send(`${service.url}/board`)).status).toBe(200);
    expect((await send(`${service.url}/status`)).body).toMatchObject({ ok: false });
    provider.become(null);
    await expect.poll(async () => (await post(`${service.url}/test/basic`, v2(signed))).status, PATIENT).toBe(200);
    await chargedOnce(chain, signed);
  },
);
