import { expect, test } from "vitest";
import { createDemoMerchant } from "../../../api/escrow/demo/merchant.ts";
import { parseSettings } from "../../../indexer/settings.ts";
import { loadKeys } from "../../../scripts/embedded/keys.ts";
import { apiPlan, indexerPlan } from "../../../scripts/embedded/services.ts";
import { folderForFile } from "../../support/for-file.ts";

test("An espresso counts as a payment to the service, because its merchant is a service address of the indexer", async () => {
  const keys = loadKeys(await folderForFile("keys-"));
  const settings = {
    port: 4020,
    rpcPorts: { "eip155:8453": 8545, "eip155:84532": 8546 },
    postgresPort: 5432,
    dataDirectory: "data",
  };
  const database = "postgres://trust@127.0.0.1:5432/trust";
  const parts = { settings, keys, apiUrl: database, indexerUrl: database, logs: "logs" };
  const { address } = createDemoMerchant(Buffer.from(String(apiPlan(parts).env?.DECOY_SEED), "base64url"));
  expect(parseSettings(indexerPlan(parts, 0).env ?? {})).toMatchObject({
    ownAddresses: expect.arrayContaining([address]),
  });
});
