import { setTimeout as sleep } from "node:timers/promises";
import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { privateKeyToAccount } from "viem/accounts";
import { escrowed } from "../../../packages/escrow/src/index.ts";

const { MERCHANT_PRIVATE_KEY, RPC_URL = "", ARBITER_URL = "", PORT, WRITING_MS } = process.env;
const account = privateKeyToAccount(MERCHANT_PRIVATE_KEY as `0x${string}`);

const app = new Hono().post(
  "/haiku",
  escrowed({ account, rpcUrl: RPC_URL, arbiterUrl: ARBITER_URL, price: "0.10", description: "A haiku" }, async (c) => {
    console.log("writing");
    await sleep(Number(WRITING_MS ?? 0));
    return c.json({ haiku: "An old silent pond / A frog jumps into the pond / Splash! Silence again" });
  }),
);

serve({ fetch: app.fetch, port: Number(PORT), hostname: "127.0.0.1" }, () => console.log("open"));
