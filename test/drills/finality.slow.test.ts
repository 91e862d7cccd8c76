import { expect, test } from "vitest";
import { eachNetwork } from "../../api/platform/networks.ts";
import { startTestChain } from "../support/chain/chain.ts";
import { startFaultyNode } from "../support/chain/nodes.ts";
import { forFile } from "../support/for-file.ts";
import { chargedOnce } from "../support/payments/on-chain.ts";
import { post, send, v2 } from "../support/payments/requests.ts";
import { newPayer, type Signed, signPayment } from "../support/payments/signing.ts";
import { age, connectOwner } from "../support/service/database.ts";
import { startService } from "../support/service/service.ts";

// docs/drills.md, "Six hours without `finalized`".

const PATIENT = { timeout: 60_000, interval: 250 };
const HOURS = 6;
const chain = await forFile(startTestChain({ roomMinutes: 60 * (HOURS + 1) }));
const node = await forFile(startFaultyNode(chain));
const rpcUrls = eachNetwork(() => node.url);
const service = await forFile(startService({ chain, config: { rpcUrls } }));
const owner = await forFile(connectOwner(service.database));

async function buy(): Promise<Signed> {
  const signed = await signPayment(await newPayer(chain));
  expect((await post(`${service.url}/test/basic`, v2(signed))).status).toBe(200);
  await chargedOnce(chain, signed);
  return signed;
}

const unfinal = async () =>
  Number(
    (await owner.query("SELECT count(*) FROM payment WHERE state = 'fulfilled' AND final_at IS NULL")).rows[0].count,
  );

test("Payments are sold for six hours without finality, and all become final once it is back", async () => {
  await buy();
  await chain.mine(4);
  await expect.poll(unfinal, PATIENT).toBe(0);
  // From here on, the tag names the same block.
  const { number } = await chain.client.getBlock({ blockTag: "finalized" });
  node.become(async (call, pass) => {
    const [tag] = call.params ?? [];
    if (call.method !== "eth_getBlockByNumber" || (tag !== "finalized" && tag !== "safe")) return pass(call);
    return pass({ ...call, params: [`0x${number.toString(16)}`, false] });
  });
  const sold: Signed[] = [];
  for (let hour = 0; hour < HOURS; hour++) {
    sold.push(await buy());
    await chain.mine(4);
    // Ages everything waiting in the database by one hour.
    await age(service.database, 3_600);
    await owner.query("UPDATE payment SET state_changed_at = state_changed_at - interval '1 h' WHERE final_at IS NULL");
  }
  expect(await unfinal()).toBe(HOURS);
  const bought = await post(`${service.url}/test/basic`, v2(sold[0] as Signed));
  expect([bought.status, bought.headers.get("x-idempotent-replay")]).toEqual([200, "true"]);
  // Old payments are parked so that they delay no others, and each one is kept.
  const parked = async () => Number((await owner.query("SELECT count(*) FROM parked_payment")).rows[0].count);
  await expect.poll(parked, PATIENT).toBeGreaterThan(0);
  expect((await send(`${service.url}/status`)).body).toMatchObject({ payments: { unresolved: 0 } });

  node.become(null);
  await expect
    .poll(async () => {
      await age(service.database, 3_600);
      return unfinal();
    }, PATIENT)
    .toBe(0);
  for (const signed of sold) await chargedOnce(chain, signed);
  expect(await parked()).toBe(0);
});
