// The facilitator of the peer of bench:payments: stock @x402 code over HTTP, with one key.
import { serve } from "@hono/node-server";
import { x402Facilitator } from "@x402/core/facilitator";
import { ExactEvmScheme } from "@x402/evm/exact/facilitator";
import { Hono } from "hono";
import { createWalletClient, type Hex, http, publicActions } from "viem";
import { nonceManager, privateKeyToAccount } from "viem/accounts";
import { base } from "viem/chains";

const account = privateKeyToAccount(process.env.FACILITATOR_PRIVATE_KEY as Hex, { nonceManager });
const client = createWalletClient({
  account,
  chain: base,
  transport: http(process.env.BASE_RPC_URL, { batch: true }),
  pollingInterval: 20,
  cacheTime: 0,
}).extend(publicActions);
const signer = { ...client, getAddresses: () => [account.address] } as unknown as ConstructorParameters<
  typeof ExactEvmScheme
>[0];
const facilitator = new x402Facilitator().register("eip155:8453", new ExactEvmScheme(signer));

const app = new Hono();
app.get("/supported", (c) => c.json(facilitator.getSupported()));
app.post("/verify", async (c) => {
  const { paymentPayload, paymentRequirements } = await c.req.json();
  return c.json(await facilitator.verify(paymentPayload, paymentRequirements));
});
app.post("/settle", async (c) => {
  const { paymentPayload, paymentRequirements } = await c.req.json();
  return c.json(await facilitator.settle(paymentPayload, paymentRequirements));
});
serve({ fetch: app.fetch, port: Number(process.env.PORT), hostname: "127.0.0.1" }, () => console.log("ready"));
