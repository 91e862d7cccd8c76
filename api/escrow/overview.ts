import { DELIVERY_TYPES } from "../../packages/escrow/src/delivery.ts";
import { RULES } from "../../packages/escrow/src/rules.ts";
import { SCHEME } from "../../packages/escrow/src/terms.ts";
import { currentOf, type EscrowContract, schemesIn } from "../payments/index.ts";
import type { EscrowLimits } from "../platform/config/values.ts";
import { formatUsd } from "../platform/money.ts";
import { explorerAddressUrl, NETWORKS } from "../platform/networks.ts";
import { contestPolicy, contestSigned } from "./contest/grounds.ts";
import { DELIVERY_VERSION, deliveryDomain } from "./delivery.ts";
import { DEMO_PATH, DEMO_PRICE } from "./demo/sell-espresso.ts";
import {
  custodyOf,
  FEE_BPS,
  FEE_TEXT,
  GAS_A_FEE_UNIT,
  OUTCOME_GAS,
  SHARED_OUTCOME_GAS,
  TIMEOUT_SECONDS,
  TIMEOUT_TEXT,
} from "./payment.ts";

/** Concatenated because this file itself does not read the environment. */
const ENV = ["process", "env"].join(".");

const IMPORTS = [
  'import { serve } from "@hono/node-server";',
  'import { escrowed } from "agent-payment-trust-escrow";',
  'import { Hono } from "hono";',
  'import { privateKeyToAccount } from "viem/accounts";',
];

/** Returns a complete merchant server. A test runs it exactly as published. */
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

export const VERIFY_PATH = "/escrow/verify";

/** Returns the escrow's policy document: contracts, fee, verdicts, how to forward a delivery, and how to integrate. */
export function escrowOverview(
  contracts: readonly EscrowContract[],
  { limits, baseUrl }: { readonly limits: EscrowLimits; readonly baseUrl: string },
) {
  const listed = [...contracts].sort((one, other) => rank(one) - rank(other));
  const [first] = listed;
  return {
    service: "Agent Payment Trust Service",
    what: `A contract holds what a buyer pays a merchant over x402. It can only pay the merchant, minus a fee of ${FEE_TEXT}, or refund the buyer.`,
    contracts: listed.map((contract) => ({
      network: contract.network,
      network_key: NETWORKS[contract.network].key,
      scheme: contract.scheme,
      address: contract.address,
      custody: contract.custody,
      collector: contract.collector,
      usdc: contract.usdc,
      arbiter: contract.arbiter,
      fee_recipient: contract.feeRecipient,
      validity:
        contract === currentOf(contracts, contract.scheme)
          ? "current"
          : "earlier: settles what it holds, accepts nothing new",
      ...custodyOf(contract),
      explorer_url: explorerAddressUrl(contract.network, contract.address),
    })),
    fee_policy: {
      fee_bps: FEE_BPS,
      text: `${FEE_TEXT} of the amount released, rounded down and fixed in each payment's signed terms. Refunds are in full.`,
    },
    limits: {
      minimum_amount: limits.minimum.toString(),
      payer_gas_a_day: limits.payerGas.toString(),
      outcome_gas: OUTCOME_GAS.toString(),
      gas_paid_by_a_unit_of_fee: GAS_A_FEE_UNIT.toString(),
      text: `Payments of less than ${formatUsd(limits.minimum)} USDC are not evaluated. A release counts ${OUTCOME_GAS.toLocaleString("en")} gas, and once it is mined its share of its transaction if that is less; less ${GAS_A_FEE_UNIT} for each atomic unit of its fee. It counts for the payer, who made the hold. If the releases of a payer's holds total more than ${limits.payerGas.toLocaleString("en")} gas in a day (UTC), the rest wait until the next day; a fee that pays for ${SHARED_OUTCOME_GAS.toLocaleString("en")} gas is never too small. Refunds count for no account. The timeout stays as it is.`,
    },
    verdict_policy: {
      version: DELIVERY_VERSION,
      rules: RULES.map(({ id, decision, when }) => ({ id, decision, when })),
      first_is_final:
        "The first evaluation of a payment is final; repeating it gets the same answer. If its terms have a contest window, the answer to the buyer's contest comes after it.",
      timeout_seconds: TIMEOUT_SECONDS,
      timeout: `From ${TIMEOUT_TEXT} after the hold, anyone may refund the payment, always to the buyer and in full; we do so automatically, within a daily budget of gas.`,
      scope: "A delivery is evaluated as it was forwarded. Its quality is not judged.",
      arbiter_can: "release to the merchant or refund the buyer, and nothing else; the contract enforces this.",
    },
    forward:
      first === undefined
        ? null
        : {
            url: `${baseUrl}${VERIFY_PATH}`,
            method: "POST",
            body: "payment_id | paymentInfo | transaction; response {status, headers, body | body_base64} | responseBody; signature; contest {seconds, conditions, salt_nonce} if the terms have a window, and only then",
            domain: deliveryDomain(NETWORKS[first.network], first.address),
            verifying_contract:
              "the address of the contract that the payment was made through, its paymentInfo.operator",
            ...DELIVERY_TYPES,
          },
    contest: {
      ...contestPolicy(baseUrl),
      signed: first === undefined ? null : contestSigned(NETWORKS[first.network], first.address),
    },
    neutrality: "The demo's merchant is one of our wallets, but not the one that receives fees and payments.",
    integration: { package: "agent-payment-trust-escrow", language: "typescript", snippet: merchantSnippet(baseUrl) },
    demo: {
      method: "POST",
      url: `${baseUrl}${DEMO_PATH}`,
      price: formatUsd(DEMO_PRICE),
      scheme: SCHEME,
      schemes: [...schemesIn(contracts)],
    },
  };
}

const rank = ({ scheme }: EscrowContract): number => (scheme === "commerce" ? 0 : 1);
