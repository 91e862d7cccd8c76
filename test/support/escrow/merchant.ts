import { setTimeout as sleep } from "node:timers/promises";
import { serve } from "@hono/node-server";
import { Hono } from "hono";
import pg from "pg";
import { privateKeyToAccount } from "viem/accounts";
import { type DeliveryStore, escrowed, memoryStore, postgresStore } from "../../../packages/escrow/src/index.ts";

/** A merchant's server, with its deliveries in memory, or in PostgreSQL if it has a database. */

const { MERCHANT_PRIVATE_KEY, RPC_URL = "", ARBITER_URL = "", PORT, DATABASE_URL, WRITING_MS } = process.env;
const account = privateKeyToAccount(MERCHANT_PRIVATE_KEY as `0x${string}`);
const kept =
  DATABASE_URL === undefined ? memoryStore() : postgresStore(new pg.Pool({ connectionString: DATABASE_URL, max: 4 }));
/** Prints whether each claim got the lease. */
const store: DeliveryStore = {
  ...kept,
  async claim(...claim) {
    const claimed = await kept.claim(...claim);
    console.log(claimed.lease === null ? "waiting" : "claimed");
    return claimed;
  },
};

const sold = escrowed({ account, rpcUrl: RPC_URL, arbiterUrl: ARBITER_URL, price: "0.10", store }, async (c) => {
  console.log("writing");
  await sleep(Number(WRITING_MS ?? 0));
  return c.json({ haiku: "An old silent pond", by: process.pid });
});

serve({ fetch: new Hono().post("/haiku", sold).fetch, port: Number(PORT), hostname: "127.0.0.1" }, () =>
  console.log("open"),
);
