import { expect, test } from "vitest";
import { NETWORKS } from "../../../api/platform/networks.ts";
import { devAccount } from "../../../scripts/embedded/dev-accounts.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { type MortalNode, startMortalNode } from "../../support/chain/nodes.ts";
import { deployEscrow } from "../../support/escrow/contract.ts";
import { forFile } from "../../support/for-file.ts";
import { chargedOnce, nothingCharged } from "../../support/payments/on-chain.ts";
import { PRICES } from "../../support/payments/prices.ts";
import { post, send, v1, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";
import { fundRelayer, startApiProcess } from "../../support/service/api-process.ts";
import { freshDatabase } from "../../support/service/database.ts";
import { ARBITER_KEY } from "../../support/service/environment.ts";

const PATIENT = { timeout: 30_000, interval: 200 };
const SEPOLIA = "eip155:84532";

const [chain, sepolia] = await Promise.all([forFile(startTestChain()), forFile(startTestChain({ network: SEPOLIA }))]);
const escrow = await deployEscrow(chain);
const database = await freshDatabase();

/** Starts the service while Base's nodes are down. */
async function startWithout(nodes: readonly MortalNode[], env: Readonly<Record<string, string>>) {
  for (const node of nodes) node.kill();
  return forFile(
    startApiProcess({
      ...{ database, env: { ARBITER_PRIVATE_KEY: ARBITER_KEY, ...env } },
      baseRpcUrl: nodes.map(({ url }) => url).join(","),
      baseSepoliaRpcUrl: sepolia.rpcUrl,
    }),
  );
}

test("Without a node of Base, the service serves everything else, and the escrow once a node responds", async () => {
  const nodes = await Promise.all([forFile(startMortalNode(chain.rpcUrl)), forFile(startMortalNode(chain.rpcUrl))]);
  await Promise.all([fundRelayer(chain), fundRelayer(sepolia)]);
  const { url, stop, ended } = await startWithout(nodes, { ESCROW_ADDRESSES: escrow.address });
  const statusOf = async (path: string) => (await send(url + path)).status;

  for (const path of ["/health", "/", "/inspect", "/board", "/status", `/verify?wallet=${devAccount(7).address}`])
    expect([path, await statusOf(path)]).toEqual([path, 200]);
  for (const path of ["/escrow", "/escrow/demo"]) {
    const { status, headers } = await send(url + path);
    expect([path, status, headers.get("retry-after")]).toEqual([path, 503, "5"]);
  }
  expect(await statusOf(`/escrow/evaluation/0x${"ab".repeat(32)}`)).toBe(404);
  const closed = await post(`${url}/escrow/demo`);
  expect(closed.status).toBe(503);
  expect(closed.body.detail).toMatch(/escrow contracts could not be read/);

  const payer = await newPayer(chain);
  const signed = await signPayment(payer);
  expect((await post(`${url}/test/basic`)).status).toBe(402);
  const refused = await post(`${url}/test/basic`, v2(signed));
  expect([refused.status, refused.body.code]).toEqual([503, "payment_pending"]);
  await nothingCharged(chain, payer);
  const guest = await newPayer(sepolia);
  const espresso = await signPayment(guest, { value: PRICES.espresso }, NETWORKS[SEPOLIA]);
  expect((await post(`${url}/order/espresso`, v1(espresso, "base-sepolia"))).status).toBe(200);

  await nodes[1]?.revive();
  await expect.poll(() => statusOf("/escrow"), PATIENT).toBe(200);
  expect((await send(`${url}/escrow`)).body.contracts).toMatchObject([{ address: escrow.address.toLowerCase() }]);
  expect((await post(`${url}/escrow/demo`)).status).toBe(402);
  // On a 503, a client sends the same payment again.
  await expect.poll(async () => (await post(`${url}/test/basic`, v2(signed))).status, PATIENT).toBe(200);
  await chargedOnce(chain, signed);
  expect((await send(`${url}/status`)).body.chains).toMatchObject([{ ok: true }, { ok: true }]);
  await stop();
  expect(await ended).toBe(0);
});
