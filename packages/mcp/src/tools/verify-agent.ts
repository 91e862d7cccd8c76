import { z } from "zod";
import { CAPABILITIES, type Capability } from "../../../verifier/src/vocabulary.ts";
import { wallet } from "../fields.ts";
import { freeTool } from "../free-tool.ts";
import { WALLET_LOG } from "../left-out.ts";
import { LIMITS } from "../limits.ts";
import { parseJson, read } from "../service.ts";

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

export const verifyAgent = freeTool({
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
