import { spawn } from "node:child_process";
import { resolve } from "node:path";
import pg from "pg";
import { expect, onTestFinished, test, vi } from "vitest";
import { USDC_ABI } from "../../scripts/embedded/usdc.ts";
import { startTestChain } from "../support/chain/chain.ts";
import { forFile } from "../support/for-file.ts";
import { createDatabase } from "../support/service/database.ts";
import { bareEnvironment } from "../support/service/environment.ts";
import { SERVICE, WALLETS } from "./history.ts";

vi.setConfig({ testTimeout: 120_000 });

const chain = await forFile(startTestChain());
const { ownerUrl } = await createDatabase();
const db = await forFile(new pg.Pool({ connectionString: ownerUrl, max: 1 }));

test("npx ponder start in the folder of the indexer indexes a chain by Ponder's own variables alone, and shows views", async () => {
  const [account, to] = [WALLETS[1], WALLETS[2]] as const;
  const call = { address: chain.network.usdc.address, abi: USDC_ABI, functionName: "transfer" } as const;
  await chain.client.writeContract({ ...call, args: [to ?? SERVICE, 5n], account: account ?? SERVICE });
  const ponder = spawn(resolve("node_modules/.bin/ponder"), ["start"], {
    cwd: "indexer",
    env: {
      ...bareEnvironment(),
      ...{ DATABASE_URL: ownerUrl, DATABASE_SCHEMA: "mine", DATABASE_VIEWS_SCHEMA: "shown", INDEX_SCOPE: "full" },
      ...{ PONDER_RPC_URL_8453: Array.from({ length: 25 }, () => chain.rpcUrl).join(), PORT: "0" },
    },
    stdio: ["ignore", "ignore", "inherit"],
  });
  onTestFinished(() => void ponder.kill("SIGKILL"));
  const shown = async () => {
    const there = await db.query("select to_regclass('shown.coverage') is not null as there");
    if (there.rows[0]?.there !== true) return null;
    const { rows } = await db.query(
      "select scope, first_block, (select count(*)::int from shown.wallet_day) as days from shown.coverage, shown.position",
    );
    return rows[0] ?? null;
  };
  await expect.poll(shown, { timeout: 100_000 }).toEqual({ scope: "full", first_block: 0, days: 2 });
});
