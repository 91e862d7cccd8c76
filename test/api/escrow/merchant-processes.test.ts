import pg from "pg";
import { type Hex, isHex } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { POSTGRES_TABLE } from "../../../packages/escrow/src/index.ts";
import { type MerchantProcess, openMerchant } from "../../support/escrow/merchant-process.ts";
import { holdsBy, newBuyer, pay, signFor, startSaleScene, statusOf } from "../../support/escrow/sale.ts";
import { eventually } from "../../support/eventually.ts";
import { forFile } from "../../support/for-file.ts";
import { freshDatabase } from "../../support/service/database.ts";

const scene = await forFile(startSaleScene());
const { ownerUrl } = await freshDatabase();
const database = await forFile(new pg.Client({ connectionString: ownerUrl }));
await database.connect();
await database.query(POSTGRES_TABLE);
const key = generatePrivateKey();
const { address } = privateKeyToAccount(key);
await scene.chain.setBalance(address, 10n ** 18n);

/** Starts a process of the one merchant in this file. */
async function open(env: Record<string, string> = {}): Promise<MerchantProcess> {
  const merchant = await openMerchant(scene, {
    MERCHANT_PRIVATE_KEY: key,
    DATABASE_URL: ownerUrl,
    ...env,
  });
  await forFile({ stop: merchant.kill });
  return merchant;
}

const overHttp = { fetch };
const idIn = (response: Response): Hex => {
  const id = response.headers.get("x-escrow-payment");
  if (!isHex(id)) throw new Error("The response names no payment.");
  return id;
};

const [first, second] = await Promise.all([open({ WRITING_MS: "60000" }), open()]);

test("If a process is killed while its handler runs, exactly one other process runs it, after the lease expires", async () => {
  const buyer = await newBuyer(scene.chain);
  const header = await signFor(overHttp, buyer, first.url);
  const lost = pay(overHttp, header, first.url).catch(() => "lost");
  await first.untilPrinted("writing");

  const elsewhere = await pay(overHttp, header, `${second.url}?another`);
  expect(elsewhere.status).toBe(409);
  expect(await elsewhere.json()).toEqual({ error: expect.stringMatching(/already bought POST \/haiku\.$/) });
  const waiting = pay(overHttp, header, second.url);
  // The second process keeps polling.
  await eventually(() => second.count("waiting") > 3, true);
  expect([first.count("writing"), second.count("writing")]).toEqual([1, 0]);

  await first.kill();
  expect(await lost).toBe("lost");
  // A minute passes.
  await database.query("update escrow_deliveries set lease_until = now()");
  const response = await waiting;
  expect(response.status).toBe(200);
  expect(response.headers.get("x-escrow-decision")).toBe("release");
  expect([second.count("claimed"), second.count("writing")]).toEqual([1, 1]);
  const id = idIn(response);
  await eventually(() => statusOf(scene, id), "released" as const);
  expect(await holdsBy(scene, buyer.address)).toBe(1);
  expect(await scene.chain.usdcBalance(address)).toBe(99_000n);
});
