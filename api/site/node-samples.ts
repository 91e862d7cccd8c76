import type { BehavioralProduct } from "../certificates/index.ts";
import { DEMO_PRICE, merchantSnippet } from "../escrow/index.ts";
import { formatUsd } from "../platform/money.ts";
import { MAIN_NETWORK, NETWORKS, sampleRpcUrl } from "../platform/networks.ts";
import { ESCROW, GATE, installCommands, type PublishedPackage, VERIFIER } from "../platform/packages.ts";
import { PAYING_CLIENT, type Program } from "./samples.ts";
import { takeTest } from "./test-samples.ts";

// The TypeScript programs in the documentation. A test extracts each one from its page and runs it in an empty folder.

/** The reader sets this environment variable. */
const PAYER = "PAYER_PRIVATE_KEY=0x…";

interface Source {
  readonly file: string;
  readonly text: string;
  /** Packages from npm's registry. */
  readonly npm: string;
  readonly env?: string;
  /** The commands after the installation, if not only `node`. */
  readonly commands?: string;
  /** Packages that this service hosts. */
  readonly ours?: readonly PublishedPackage[];
}

const program = (baseUrl: string, source: Source): Program => {
  const { file, text, npm, env = PAYER, commands = `${env} node ${file}`.trimStart(), ours = [] } = source;
  return { file, text, run: `${installCommands(baseUrl, ours, [npm].filter(Boolean))}\n${commands}` };
};

const nextCommands = (env: string): string => `npx --no-install next build\n${env} npx --no-install next start`;

const CLIENT = "@x402/fetch @x402/evm viem";

const POST_JSON = `method: "POST",
  headers: { "content-type": "application/json" },`;

const gated = (imports: string, serving: string) => (baseUrl: string) =>
  `import { HTTPFacilitatorClient } from "@x402/core/server";
import { ExactEvmScheme } from "@x402/evm/exact/server";
${imports}

const server = new x402ResourceServer(
  new HTTPFacilitatorClient({ url: process.env.FACILITATOR_URL }),
).register("${MAIN_NETWORK}", new ExactEvmScheme());
const accepts = { scheme: "exact", network: "${MAIN_NETWORK}", price: "$0.01", payTo: process.env.PAY_TO };
const gate = verifiedOnly({ service: "${baseUrl}", require: "verified" });

${serving}`;

const { key: NETWORK_KEY } = NETWORKS[MAIN_NETWORK];
const merchant = (): string => `MERCHANT_PRIVATE_KEY=0x… BASE_RPC_URL=${sampleRpcUrl(MAIN_NETWORK)}`;
const PRICE = formatUsd(DEMO_PRICE);
const SHOP = "FACILITATOR_URL=https://… PAY_TO=0x…";

const honoShop = gated(
  `import { paymentMiddlewareFromHTTPServer, x402HTTPResourceServer, x402ResourceServer } from "@x402/hono";
import { serve } from "@hono/node-server";
import { verifiedOnly } from "agent-payment-trust-gate";
import { Hono } from "hono";`,
  `const paid = gate(new x402HTTPResourceServer(server, { "POST /paid/haiku": { accepts } }));
const app = new Hono();
app.use(paymentMiddlewareFromHTTPServer(paid));
app.post("/paid/haiku", (c) => c.json({ haiku: "An old silent pond" }));

serve({ fetch: app.fetch, port: Number(process.env.PORT ?? 3000) });
`,
);

const expressShop = gated(
  `import { paymentMiddlewareFromHTTPServer, x402HTTPResourceServer, x402ResourceServer } from "@x402/express";
import { verifiedOnly } from "agent-payment-trust-gate";
import express from "express";`,
  `const paid = gate(new x402HTTPResourceServer(server, { "POST /paid/haiku": { accepts } }));
const app = express();
app.use(paymentMiddlewareFromHTTPServer(paid));
app.post("/paid/haiku", (request, response) => response.json({ haiku: "An old silent pond" }));

app.listen(Number(process.env.PORT ?? 3000));
`,
);

const nextShop = gated(
  `import { withX402FromHTTPServer, x402HTTPResourceServer, x402ResourceServer } from "@x402/next";
import { verifiedOnly } from "agent-payment-trust-gate";
import { NextResponse } from "next/server";`,
  `const paid = gate(new x402HTTPResourceServer(server, { accepts }));
export const POST = withX402FromHTTPServer(async () => NextResponse.json({ haiku: "An old silent pond" }), paid);
`,
);

/** Returns a program that passes the test. */
export function nodeTest(product: BehavioralProduct, baseUrl: string): Program {
  const { caption, text } = takeTest(product, baseUrl);
  return program(baseUrl, { file: caption, text, npm: CLIENT });
}

/** The first program in the documentation, also shown on the home page. */
export const payProgram = (baseUrl: string): Program =>
  program(baseUrl, {
    file: "pay.mjs",
    npm: CLIENT,
    text: `${PAYING_CLIENT}
const answer = await fetchAndPay("${baseUrl}/test/basic", { method: "POST" });
console.log(await answer.json()); // cert_url, badge_url, badge_markdown, …
`,
  });

/** Each program by its name. */
export const nodePrograms = (baseUrl: string, wallet: string) => {
  const make = (source: Source) => program(baseUrl, source);
  return {
    pay: payProgram(baseUrl),
    settled: make({
      file: "settled.mjs",
      npm: CLIENT,
      text: `${PAYING_CLIENT}
// Keep the signed authorization: the response can get lost, but the payment still counts.
let signed = null;
client.onAfterPaymentCreation(async ({ paymentPayload }) => {
  signed = paymentPayload.payload.authorization;
});
await fetchAndPay("${baseUrl}/test/basic", { method: "POST" }).catch((lost) => console.error(lost));

const { from, nonce, validBefore } = signed;
const query = new URLSearchParams({ network: "${NETWORK_KEY}", from, nonce, valid_before: validBefore });
const answer = await fetch(\`${baseUrl}/settlement?\${query}\`);
const { status, final, means, transaction } = await answer.json();
console.log(status, final, transaction); // settled, pending, expired, canceled, replaced or used
console.log(means); // whether to sign again
`,
    }),
    purchases: make({
      file: "purchases.mjs",
      npm: "@x402/fetch @x402/extensions viem",
      text: `import { createSIWxClientExtension } from "@x402/extensions/sign-in-with-x";
import { wrapFetchWithPayment, x402Client, x402HTTPClient } from "@x402/fetch";
import { privateKeyToAccount } from "viem/accounts";

const payer = privateKeyToAccount(process.env.PAYER_PRIVATE_KEY);
const client = new x402Client().registerExtension(createSIWxClientExtension({ signers: [payer] }));
const answer = await wrapFetchWithPayment(fetch, new x402HTTPClient(client))("${baseUrl}/purchases");
const { purchases } = await answer.json();
for (const { resource, amount_usd, transaction } of purchases) console.log(resource, amount_usd, "USDC", transaction);
console.log(purchases[0]?.answer?.body); // the newest answer, in full
`,
    }),
    check: make({
      file: "check.mjs",
      ours: [VERIFIER],
      npm: "",
      env: "",
      text: `import { claimsOf, parseKeySet, shortcomings, verifyDocument } from "agent-payment-trust-verifier";

const service = "${baseUrl}";
const wallet = "${wallet}";
const text = async (path) => (await fetch(service + path)).text(); // as received, because parsing hides duplicate members

const keys = await parseKeySet(await text("/.well-known/jwks.json"));
const { valid, document } = await verifyDocument(await text(\`/credential/\${wallet}\`), { keys, issuer: service });
if (!valid || document === null) throw new Error(\`not signed by \${service}, or not fresh\`);
const missing = shortcomings(document, claimsOf(document), { names: ["verified"], wallet, at: new Date() });
console.log(missing.length === 0 ? "verified" : missing);
`,
    }),
    hono: make({
      file: "hono.mjs",
      ours: [GATE],
      npm: "@x402/hono hono @hono/node-server @x402/core @x402/evm",
      env: SHOP,
      text: honoShop(baseUrl),
    }),
    express: make({
      file: "express.mjs",
      ours: [GATE],
      npm: "@x402/express express @x402/core @x402/evm",
      env: SHOP,
      text: expressShop(baseUrl),
    }),
    next: make({
      file: "app/paid/haiku/route.js",
      ours: [GATE],
      npm: "@x402/next next react react-dom @x402/core @x402/evm",
      commands: nextCommands(SHOP),
      text: nextShop(baseUrl),
    }),
    shop: make({
      file: "shop.mjs",
      ours: [ESCROW],
      npm: "hono @hono/node-server viem",
      env: merchant(),
      text: merchantSnippet(baseUrl),
    }),
    shopExpress: make({
      file: "shop-express.mjs",
      ours: [ESCROW],
      npm: "express viem",
      env: merchant(),
      text: `import { escrowed } from "agent-payment-trust-escrow/express";
import express from "express";
import { privateKeyToAccount } from "viem/accounts";

const account = privateKeyToAccount(process.env.MERCHANT_PRIVATE_KEY);
const rpcUrl = process.env.BASE_RPC_URL;
const sold = escrowed({ account, rpcUrl, price: "${PRICE}", arbiterUrl: "${baseUrl}" });
const app = express();

app.post("/haiku", sold, (request, response) => response.json({ haiku: "An old silent pond" }));

app.listen(Number(process.env.PORT ?? 3000));
`,
    }),
    shopNext: make({
      file: "app/haiku/route.js",
      ours: [ESCROW],
      npm: "next react react-dom viem",
      commands: nextCommands(merchant()),
      text: `import { escrowed } from "agent-payment-trust-escrow/next";
import { privateKeyToAccount } from "viem/accounts";

const account = () => privateKeyToAccount(process.env.MERCHANT_PRIVATE_KEY);
const rpcUrl = () => process.env.BASE_RPC_URL;

const options = { account, rpcUrl, price: "${PRICE}", arbiterUrl: "${baseUrl}" };

export const POST = escrowed(options, async () => Response.json({ haiku: "An old silent pond" }));
`,
    }),
    buyer: make({
      file: "buyer.mjs",
      npm: CLIENT,
      text: `import { AuthCaptureEvmScheme } from "@x402/evm/auth-capture/client";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { privateKeyToAccount } from "viem/accounts";

const payer = privateKeyToAccount(process.env.PAYER_PRIVATE_KEY);
// Only contracts that this service arbitrates may hold the money, because a merchant can name any contract.
const { contracts } = await (await fetch("${baseUrl}/escrow")).json();
const trusted = contracts.map(({ address }) => address);
const client = new x402Client()
  .register("${MAIN_NETWORK}", new AuthCaptureEvmScheme(payer))
  .registerPolicy((_, offers) => offers.filter(({ extra }) => trusted.includes(String(extra.captureAuthorizer).toLowerCase())));
const answer = await wrapFetchWithPayment(fetch, client)(process.env.SHOP_URL ?? "http://localhost:3000/haiku", { method: "POST" });
console.log(await answer.json(), answer.headers.get("x-escrow-decision")); // release
`,
    }),
    exam: make({
      file: "exam.mjs",
      npm: CLIENT,
      env: `${PAYER} SELLER_URL=https://…`,
      text: `import { setTimeout as sleep } from "node:timers/promises";
${PAYING_CLIENT}
const answer = await fetchAndPay("${baseUrl}/test/seller", {
  ${POST_JSON}
  body: JSON.stringify({ url: process.env.SELLER_URL }),
});
const order = await answer.json();
if (!answer.ok) throw new Error(JSON.stringify(order)); // the reason; nothing was charged
for (;;) {
  const exam = await (await fetch(order.exam_url)).json();
  console.log(exam.status, exam.level ?? "");
  if (exam.status !== "incomplete") break;
  await sleep(5_000);
}
console.log(order.cert_url); // the public record
`,
    }),
    verdict: make({
      file: "verdict.mjs",
      npm: CLIENT,
      text: `import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
${PAYING_CLIENT}
// Agreed when the deal was made: the SHA-256 of the delivery.
const agreed = createHash("sha256").update("An old silent pond").digest("hex");

const answer = await fetchAndPay("${baseUrl}/arbiter/verify", {
  ${POST_JSON}
  body: JSON.stringify({
    category: "payload-hash",
    conditions: { payload_text: "An old silent pond", expected_sha256: agreed },
    deal_ref: "order-4711",
  }),
});
const text = await answer.text();
if (!answer.ok) throw new Error(text); // a 422 cites the policy rule; nothing was charged
await writeFile("verdict.json", text);
console.log(JSON.parse(text).verdict); // release, refund or escalate
`,
    }),
    scores: make({
      file: "scores.mjs",
      ours: [VERIFIER],
      npm: CLIENT,
      text: `import { replayScores } from "agent-payment-trust-verifier";
${PAYING_CLIENT}
const answer = await fetchAndPay("${baseUrl}/score/batch", {
  ${POST_JSON}
  body: JSON.stringify({ wallets: ["${wallet}", payer.address] }),
});
const text = await answer.text();
if (!answer.ok) throw new Error(text);
for (const { wallet, score, tier, flags } of JSON.parse(text)) console.log(wallet, score, tier, flags);
for (const { same } of await replayScores(text)) console.log("recomputed on this machine:", same ? "same" : "different");
`,
    }),
  } as const satisfies Readonly<Record<string, Program>>;
};
