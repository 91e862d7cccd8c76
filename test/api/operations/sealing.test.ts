import pg from "pg";
import { describe, expect, test } from "vitest";
import { createSeal } from "../../../api/platform/db/seal.ts";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { reseal } from "../../../scripts/reseal.ts";
import { startTestChain } from "../../support/chain/chain.ts";
import { forFile } from "../../support/for-file.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { chargedOnce } from "../../support/payments/on-chain.ts";
import { post, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";
import { freshDatabase, type TestDatabase } from "../../support/service/database.ts";
import { startService } from "../../support/service/service.ts";

const chain = await forFile(startTestChain());
const [OLD, NEW, OTHER] = [5, 6, 7].map((byte) => Buffer.alloc(32, byte)) as [Buffer, Buffer, Buffer];

const ask = ({ ownerUrl }: TestDatabase, text: string) =>
  withClient(ownerUrl, (client) => client.query<{ hash: string }>(text));
const renewed = async ({ apiUrl }: TestDatabase, seal = createSeal(NEW, [OLD])) => {
  const db = new pg.Client({ connectionString: apiUrl });
  await db.connect();
  return reseal(db, seal).finally(() => db.end());
};

describe("A replaced sealing key", () => {
  test.each([
    { name: "With the old key configured as retired", retiredSealingKeys: [OLD] },
    { name: "With all rows sealed again", retiredSealingKeys: [] },
  ])("$name, a settling payment is sent again and charged once", { timeout: 60_000 }, async (next) => {
    const database = await freshDatabase();
    const signed = await signPayment(await newPayer(chain));
    const first = await startService({ chain, database, patienceMs: 300, config: { sealingKey: OLD } });
    await chain.client.setAutomine(false);
    expectProblem(await post(`${first.url}/test/basic`, v2(signed)), 503, "payment_pending");
    await first.stop();
    // The nodes have dropped the transaction, so it must be sent again from the stored one.
    const { rows } = await ask(database, "SELECT encode(hashes[1], 'hex') AS hash FROM relay");
    for (const { hash } of rows) await chain.client.dropTransaction({ hash: `0x${hash}` });
    await chain.client.setAutomine(true);

    if (next.retiredSealingKeys.length === 0) {
      expect(await renewed(database, createSeal(OTHER))).toEqual({ renewed: 0, unreadable: 2 });
      expect(await renewed(database)).toEqual({ renewed: 2, unreadable: 0 });
      expect(await renewed(database)).toEqual({ renewed: 0, unreadable: 0 });
    }
    const config = { sealingKey: NEW, retiredSealingKeys: next.retiredSealingKeys, baseUrl: first.url };
    const second = await startService({ chain, database, config });
    const url = `http://localhost:${second.config.port}/test/basic`;
    await expect.poll(async () => (await post(url, v2(signed))).status, { timeout: 30_000, interval: 500 }).toBe(200);
    await chargedOnce(chain, signed);
    await second.stop();
  });
});
