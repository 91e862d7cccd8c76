import { MAIN_NETWORK, type Network, TEST_NETWORK } from "../platform/networks.ts";
import { installCommands, REPLAYABLE } from "../platform/packages.ts";
import type { Program } from "./samples.ts";

const FILE = "passing-shop.mjs";
const NPM = "@x402/hono hono @hono/node-server @x402/core @x402/evm";
const install = (baseUrl: string): string => installCommands(baseUrl, [REPLAYABLE], [NPM]);

/** A shop with stock middleware that passes every check of the exam. A test runs it and examines it. */
const shop = (network: Network): string => `import { serve } from "@hono/node-server";
import { HTTPFacilitatorClient } from "@x402/core/server";
import { ExactEvmScheme } from "@x402/evm/exact/server";
import { paymentMiddleware, x402ResourceServer } from "@x402/hono";
import { replayable } from "agent-payment-trust-replayable";
import { Hono } from "hono";

const server = new x402ResourceServer(
  new HTTPFacilitatorClient({ url: process.env.FACILITATOR_URL }),
).register("${network}", new ExactEvmScheme());
const accepts = { scheme: "exact", network: "${network}", price: "$0.01", payTo: process.env.PAY_TO };

const app = new Hono();
// Every method is paid, because a route declared for GET alone would serve HEAD for free.
app.use(replayable(paymentMiddleware({ "/haiku": { accepts } }, server)));
app.get("/haiku", (c) => c.json({ haiku: "An old silent pond" }));

serve({ fetch: app.fetch, port: Number(process.env.PORT ?? 3000) });
`;

/** A facilitator for a local chain, which has no public one. */
export const facilitatorProgram = (): Program => ({
  file: "facilitator.mjs",
  text: `import { serve } from "@hono/node-server";
import { x402Facilitator } from "@x402/core/facilitator";
import { ExactEvmScheme } from "@x402/evm/exact/facilitator";
import { Hono } from "hono";
import { createWalletClient, http, publicActions } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { base } from "viem/chains";

const account = privateKeyToAccount(process.env.FACILITATOR_PRIVATE_KEY); // pays the gas
const client = createWalletClient({ account, chain: base, transport: http(process.env.BASE_RPC_URL) });
const signer = { ...client.extend(publicActions), getAddresses: () => [account.address] };
const facilitator = new x402Facilitator().register("${MAIN_NETWORK}", new ExactEvmScheme(signer));

// One payment at a time, so that no two transactions get the same nonce.
let last = Promise.resolve();
const settle = (payload, requirements) => {
  last = last.catch(() => {}).then(() => facilitator.settle(payload, requirements));
  return last;
};

const app = new Hono();
app.get("/supported", (c) => c.json(facilitator.getSupported()));
app.post("/verify", async (c) => {
  const { paymentPayload, paymentRequirements } = await c.req.json();
  return c.json(await facilitator.verify(paymentPayload, paymentRequirements));
});
app.post("/settle", async (c) => {
  const { paymentPayload, paymentRequirements } = await c.req.json();
  return c.json(await settle(paymentPayload, paymentRequirements));
});

serve({ fetch: app.fetch, port: Number(process.env.PORT ?? 4402) });
`,
  run: `npm install @x402/core @x402/evm viem hono @hono/node-server
FACILITATOR_PRIVATE_KEY=0x… BASE_RPC_URL=http://127.0.0.1:8545 node facilitator.mjs`,
});

export const passingShopProgram = (baseUrl: string): Program => ({
  file: FILE,
  text: shop(MAIN_NETWORK),
  run: `${install(baseUrl)}\nFACILITATOR_URL=https://… PAY_TO=0x… node ${FILE}`,
});

/** The same shop in test money, which a rehearsal shows to a seller that failed. */
export const passingShop = (baseUrl: string) => ({
  file: FILE,
  text: shop(TEST_NETWORK),
  install: install(baseUrl),
  docs: `${baseUrl}/docs/seller#passes`,
});
