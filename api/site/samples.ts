import { MAIN_NETWORK } from "../platform/networks.ts";
import { ESCROW, installCommands, PACKAGES, VERIFIER } from "../platform/packages.ts";
import type { CodeBlock } from "../platform/page/page.ts";

// What the documentation shows: a test extracts each block from its page and runs it.

/** What the documentation's programs import. */
export const install = (baseUrl: string): CodeBlock => ({
  id: "install",
  caption: "In a folder of your own",
  language: "bash",
  text: installCommands(baseUrl, [ESCROW, VERIFIER], ["@x402/fetch @x402/evm viem hono @hono/node-server"]),
});

/** All of our packages. */
export const installAll = (baseUrl: string): CodeBlock => ({
  id: "install-packages",
  caption: "All packages, in a folder of your own",
  language: "bash",
  text: installCommands(baseUrl, PACKAGES),
});

/** A wallet and a client that pays with it, for the start of a program. */
export const PAYING_CLIENT = `import { ExactEvmScheme } from "@x402/evm";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { privateKeyToAccount } from "viem/accounts";

const payer = privateKeyToAccount(process.env.PAYER_PRIVATE_KEY);
const client = new x402Client().register("${MAIN_NETWORK}", new ExactEvmScheme(payer));
const fetchAndPay = wrapFetchWithPayment(fetch, client);
`;

export const seeTerms = (baseUrl: string): CodeBlock => ({
  id: "see-terms",
  caption: "See the terms without paying",
  language: "bash",
  text: `curl -i -X POST ${baseUrl}/test/basic`,
});

export const payForTest = (baseUrl: string): CodeBlock => ({
  id: "pay",
  caption: "pay.mjs",
  text: `${PAYING_CLIENT}
const answer = await fetchAndPay("${baseUrl}/test/basic", { method: "POST" });
console.log(await answer.json()); // cert_url, badge_url, badge_markdown, …
`,
});

export const verifyWallet = (baseUrl: string, wallet: string): CodeBlock => ({
  id: "verify-wallet",
  caption: "Look up a wallet",
  language: "bash",
  text: `curl "${baseUrl}/verify?wallet=${wallet}"`,
});

export const checkCredential = (baseUrl: string, wallet: string): CodeBlock => ({
  id: "check-credential",
  caption: "Check a credential without trusting this service",
  language: "bash",
  text: `npx agent-payment-trust-verifier ${baseUrl}/credential/${wallet}`,
});

export const buyScores = (baseUrl: string, wallet: string): CodeBlock => ({
  id: "scores",
  caption: "scores.mjs",
  text: `import { replayScores } from "agent-payment-trust-verifier";
${PAYING_CLIENT}
const answer = await fetchAndPay("${baseUrl}/score/batch", {
  method: "POST",
  headers: { "content-type": "application/json" },
  body: JSON.stringify({ wallets: ["${wallet}", payer.address] }),
});
const text = await answer.text();
if (!answer.ok) throw new Error(text);
for (const { wallet, score, tier, flags } of JSON.parse(text)) console.log(wallet, score, tier, flags);
for (const { same } of await replayScores(text)) console.log("recomputed on this machine:", same ? "same" : "different");
`,
});

export const buyVerdict = (baseUrl: string): CodeBlock => ({
  id: "verdict",
  caption: "verdict.mjs",
  text: `import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
${PAYING_CLIENT}
// Agreed when the deal was made: the SHA-256 of the delivery.
const agreed = createHash("sha256").update("An old silent pond").digest("hex");

const answer = await fetchAndPay("${baseUrl}/arbiter/verify", {
  method: "POST",
  headers: { "content-type": "application/json" },
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
});

export const checkVerdict = (baseUrl: string): CodeBlock => ({
  id: "check-verdict",
  caption: "Check the verdict offline",
  language: "bash",
  text: `npx agent-payment-trust-verifier verdict.json --issuer ${baseUrl}`,
});

export const VERDICT_CONTRACT: CodeBlock = {
  id: "verdict-contract",
  caption: "Deal.sol, next to VerdictLib.sol",
  text: `// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {VerdictLib} from "./VerdictLib.sol";

contract Deal {
    address public immutable ARBITER;
    bytes32 public immutable CONDITIONS;
    bytes32 public immutable DEAL_REF;

    constructor(address arbiter, bytes32 conditionsSha256, string memory dealRef) {
        ARBITER = arbiter;
        CONDITIONS = conditionsSha256;
        DEAL_REF = keccak256(bytes(dealRef));
    }

    /// Whether to pay the payee. Reverts if the verdict is not the arbiter's, is too old, or is for another deal.
    function isReleased(VerdictLib.Verdict calldata verdict, bytes calldata signature) public view returns (bool) {
        VerdictLib.check(verdict, signature, ARBITER, 7 days);
        require(verdict.conditionsSha256 == CONDITIONS && verdict.dealRefHash == DEAL_REF, "another deal");
        return verdict.outcome == VerdictLib.Outcome.Release;
    }
}
`,
};

export const buyThroughEscrow = (baseUrl: string): CodeBlock => ({
  id: "escrow-buyer",
  caption: "buyer.mjs",
  text: `import { AuthCaptureEvmScheme } from "@x402/evm/auth-capture/client";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { privateKeyToAccount } from "viem/accounts";

const payer = privateKeyToAccount(process.env.PAYER_PRIVATE_KEY);
// Only contracts that this service arbitrates may hold the money: a merchant could name another.
const { contracts } = await (await fetch("${baseUrl}/escrow")).json();
const trusted = contracts.map(({ address }) => address);
const client = new x402Client()
  .register("${MAIN_NETWORK}", new AuthCaptureEvmScheme(payer))
  .registerPolicy((_, offers) => offers.filter(({ extra }) => trusted.includes(String(extra.captureAuthorizer).toLowerCase())));
const answer = await wrapFetchWithPayment(fetch, client)(process.env.SHOP_URL ?? "http://localhost:3000/haiku", { method: "POST" });
console.log(await answer.json(), answer.headers.get("x-escrow-decision")); // release
`,
});
