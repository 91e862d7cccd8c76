import { z } from "zod";
import { NETWORKS, type Network } from "../../../verifier/src/networks.ts";
import { CAPABILITIES, type Capability } from "../../../verifier/src/vocabulary.ts";
import { origin, wallet } from "../fields.ts";
import { type FreeTool, freeTool } from "../free-tool.ts";
import { WALLET_LOG } from "../left-out.ts";
import { LIMITS } from "../products.ts";
import { parseJson, read } from "../service.ts";
import { readSettlement, SETTLEMENT } from "../settlement.ts";
import { checkCredential } from "./check-credential.ts";
import { arbiterPolicy, escrowInfo, listTests } from "./documents.ts";

const CAPABILITY = z.looseObject({
  tested: z.boolean(),
  result: z.enum(["pass", "fail"]).nullable(),
  fresh: z.boolean(),
});

const VERIFICATION = z.looseObject({
  wallet,
  tested: z.boolean(),
  verified: z.boolean(),
  verified_means: z.string(),
  reasons: z
    .array(z.looseObject({ code: z.string(), text: z.string(), cert_url: z.string().nullable() }))
    .describe("Why the wallet is not verified; empty when it is."),
  capabilities: z.object(
    Object.fromEntries(CAPABILITIES.map((name) => [name, CAPABILITY])) as Record<Capability, typeof CAPABILITY>,
  ),
  certs: z.array(z.looseObject({ result: z.string(), fresh: z.boolean(), cert_url: z.string() })),
  activity: z.looseObject({
    settled_payments: z.int().nullable(),
    distinct_counterparties: z.int().nullable(),
    last_seen_days: z.int().nullable(),
  }),
  checked_at: z.string(),
  wallet_log: WALLET_LOG.exactOptional(),
});

const verifyAgent = freeTool({
  name: "verify_agent",
  title: "Verify an agent",
  description: `Returns the record of an agent's wallet: its certificates, whether it is verified now (and if not, why), and its public payments over ${LIMITS.activityDays} days. These are facts, not a guarantee. With the user's log policy, also whether a FAIL is omitted. Free.`,
  input: z.strictObject({ wallet }),
  output: VERIFICATION,
  reads: ["/verify"],
  async run(input, { service, askLeftOut }) {
    const path = `/verify?wallet=${input.wallet}`;
    const compared = await askLeftOut?.(input.wallet, path);
    const text = compared?.text ?? (await read(service, path)).text;
    const document = parseJson({ text }, path) as z.infer<typeof VERIFICATION>;
    return compared === undefined ? document : { ...document, wallet_log: compared.walletLog };
  },
});

const SELLER_VERIFICATION = z.looseObject({
  origin: z.string(),
  tested: z.boolean(),
  verified: z.boolean(),
  verified_means: z.string(),
  counting_rule: z.string(),
  reasons: z
    .array(z.looseObject({ code: z.string(), text: z.string(), cert_url: z.string().nullable() }))
    .describe("Why the seller is not verified; empty when it is."),
  certs: z.array(
    z.looseObject({
      result: z.enum(["pass", "fail"]),
      level: z.enum(["full", "safe"]).nullable(),
      method: z.string(),
      url: z.string().describe("The examined URL, as the seller wrote it."),
      pay_to: z.string(),
      fresh: z.boolean(),
      cert_url: z.string(),
    }),
  ),
  checked_at: z.string(),
});

const verifySeller = freeTool({
  name: "verify_seller",
  title: "Verify a seller",
  description: `Returns the exam results of a paid API, to read before you pay it: whether its origin is verified now (and if not, why), each examined request, its level, and its payee. An exam buys from the seller with real money and counts for ${LIMITS.certificateDays} days. These are facts, not a guarantee. Free.`,
  input: z.strictObject({ origin }),
  output: SELLER_VERIFICATION,
  reads: ["/verify"],
  run: async (input, { service }) =>
    (await read(service, `/verify?origin=${encodeURIComponent(input.origin)}`)).document as z.infer<
      typeof SELLER_VERIFICATION
    >,
});

const settlementStatus = freeTool({
  name: "settlement_status",
  title: "Look up a payment's status",
  description:
    "Whether a USDC authorization (EIP-3009), to any payee, has settled, can still settle, or never can. Call it before you sign a second time for the same purchase: only expired, canceled, or replaced with final true mean that the first can never be charged. Free.",
  input: z.strictObject({
    network: z
      .enum([...Object.values(NETWORKS).map(({ key }) => key), ...(Object.keys(NETWORKS) as Network[])])
      .default("eip155:8453"),
    from: wallet,
    nonce: z
      .string()
      .regex(/^0x[0-9a-fA-F]{64}$/, "expected a nonce: 0x and 64 hex digits")
      .describe("The authorization's nonce."),
    valid_before: z
      .string()
      .regex(/^\d{1,78}$/, "expected Unix seconds")
      .optional()
      .describe("The authorization's validBefore. Without it, no status is ever expired."),
    transaction: z
      .string()
      .regex(/^0x[0-9a-fA-F]{64}$/, "expected a transaction hash: 0x and 64 hex digits")
      .optional()
      .describe("A transaction that may have settled it, for an old authorization."),
  }),
  output: SETTLEMENT,
  reads: ["/settlement"],
  run: (input, { service }) => readSettlement(service, input),
});

/** The tools that need no key. The service serves the same ones at `POST /mcp`. */
export const FREE_TOOLS: readonly FreeTool[] = [
  verifyAgent,
  verifySeller,
  checkCredential,
  listTests,
  arbiterPolicy,
  escrowInfo,
  settlementStatus,
];
