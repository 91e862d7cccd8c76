// A shop behind x402-hono: node hono-v1.mjs <port> <facilitator>
import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { paymentMiddleware } from "x402-hono";

const [port, facilitator] = process.argv.slice(2);
const paid = { price: "$0.001", network: "base" };
let runs = 0;
const app = new Hono();
app.use(
  paymentMiddleware(
    "0x00000000000000000000000000000000000c0ffe",
    { "GET /haiku": paid, "GET /sonnet": paid },
    { url: facilitator },
  ),
);
for (const path of ["/haiku", "/sonnet"]) app.get(path, (c) => c.json({ poem: "rain on the roof", run: ++runs }));
serve({ fetch: app.fetch, port: Number(port), hostname: "127.0.0.1" });
