// The peer of bench:payments: a bare Hono server with the stock middleware of @x402/hono and an empty handler.
import { serve } from "@hono/node-server";
import { HTTPFacilitatorClient, x402ResourceServer } from "@x402/core/server";
import { ExactEvmScheme } from "@x402/evm/exact/server";
import { paymentMiddleware } from "@x402/hono";
import { Hono } from "hono";

const { FACILITATOR_URL = "", PAY_TO_ADDRESS = "", PORT } = process.env;
const server = new x402ResourceServer(new HTTPFacilitatorClient({ url: FACILITATOR_URL }));
server.register("eip155:8453", new ExactEvmScheme());
const accepts = { scheme: "exact", price: "$0.25", network: "eip155:8453", payTo: PAY_TO_ADDRESS } as const;

const app = new Hono();
app.use(paymentMiddleware({ "POST /paid": { accepts, description: "bench" } }, server));
app.post("/paid", (c) => c.json({}));
serve({ fetch: app.fetch, port: Number(PORT), hostname: "127.0.0.1" }, () => console.log("ready"));
