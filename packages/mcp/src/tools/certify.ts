import { z } from "zod";
import { standingOf } from "../../../verifier/src/index.ts";
import { BEHAVIORAL_PRODUCTS, SINGLE_PRODUCTS, type SingleProduct } from "../../../verifier/src/vocabulary.ts";
import { maxPrice, wallet } from "../fields.ts";
import { PAID_OUTPUT } from "../paid-output.ts";
import { paidTool } from "../paid-tool.ts";
import { LIMITS, PRODUCTS } from "../products.ts";
import { parseJson, read, type Service } from "../service.ts";

const CERTIFICATE = z.looseObject({
  conformance: z.boolean(),
  product: z.string(),
  verdict: z.string(),
  level: z.string(),
  wallet,
  cert_url: z.string(),
  badge_url: z.string(),
  badge_markdown: z.string(),
});

const agentId = z
  .string()
  .regex(/^(0|[1-9]\d{0,77})$/, 'expected an agent\'s id as a decimal number, like "22"')
  .describe(
    "The agent's id in ERC-8004's identity registry, to publish the result as feedback about it. Its wallet must be the one that pays. A service that does not publish refuses the call and charges nothing.",
  );

const isSingle = (test: string): test is SingleProduct => (SINGLE_PRODUCTS as readonly string[]).includes(test);

const NOT_PLAYED = `Nothing was bought. The ${BEHAVIORAL_PRODUCTS.join(" and ")} tests observe what the agent itself signs: each serves two orders, one of which must be refused. This server would answer by a fixed rule, so the certificate would not reflect the agent's judgment. Run the test with the agent's own x402 client; list_tests has the steps.`;

export const certify = paidTool({
  name: "certify",
  title: "Buy a certificate",
  description: `Certifies the wallet that this server pays from: basic (it can pay) or suite (every settlement fact and authorization hygiene). Returns the public certificate and a README badge, valid for ${LIMITS.certificateDays} days. The behavioral tests, ${BEHAVIORAL_PRODUCTS.join(" and ")}, are explained but not run, because they observe the agent's own judgment.`,
  input: z.strictObject({
    test: z.enum([...SINGLE_PRODUCTS, ...BEHAVIORAL_PRODUCTS]),
    erc8004_agent_id: agentId.exactOptional(),
    max_price: maxPrice,
  }),
  output: PAID_OUTPUT.extend({
    certificate: CERTIFICATE.exactOptional(),
    wallet_standing: z
      .string()
      .exactOptional()
      .describe(
        'Whether the wallet is verified now, like "verified" or "not verified: FAIL in scam": a certificate is one test run, and no PASS makes up for a current FAIL.',
      ),
  }),
  sells: SINGLE_PRODUCTS.map((test) => PRODUCTS[test]),
  async run({ test, erc8004_agent_id: agentId, max_price }, { shop, service }) {
    if (!isSingle(test)) return { status: "not_played" as const, what_to_do: NOT_PLAYED };
    const body = agentId === undefined ? {} : { erc8004: { agentId } };
    return shop.buy({ product: PRODUCTS[test], body, maxPrice: max_price }, async (sale) => {
      const certificate = CERTIFICATE.safeParse(sale.document);
      if (!certificate.success) throw sale.refuse("it is not a certificate.");
      if (certificate.data.product !== test)
        throw sale.refuse(`it certifies ${certificate.data.product}, not ${test}.`);
      if (certificate.data.wallet.toLowerCase() !== shop.payer?.toLowerCase())
        throw sale.refuse("it certifies a different wallet.");
      const status = await standingNow(certificate.data.wallet, service);
      return { ...sale.paid, certificate: certificate.data, wallet_standing: status };
    });
  },
});

/** The purchase is handed over even if the wallet's record cannot be read. */
async function standingNow(wallet: string, service: Service): Promise<string> {
  const path = `/verify?wallet=${wallet}`;
  try {
    return standingOf(parseJson(await read(service, path), path) as Parameters<typeof standingOf>[0]);
  } catch {
    return `not known: ${path} did not answer; verify_agent asks again`;
  }
}
