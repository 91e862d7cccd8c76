import { z } from "zod";
import { origin } from "../fields.ts";
import { freeTool } from "../free-tool.ts";
import { LIMITS } from "../limits.ts";
import { read } from "../service.ts";

const VERIFICATION = z.looseObject({
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

export const verifySeller = freeTool({
  name: "verify_seller",
  title: "Verify a seller",
  description: `Returns the exam results of a paid API, to read before you pay it: whether its origin is verified now (and if not, why), each examined request, its level, and its payee. An exam buys from the seller with real money and counts for ${LIMITS.certificateDays} days. These are facts, not a guarantee. Free.`,
  input: z.strictObject({ origin }),
  output: VERIFICATION,
  reads: ["/verify"],
  run: async (input, { service }) =>
    (await read(service, `/verify?origin=${encodeURIComponent(input.origin)}`)).document as z.infer<
      typeof VERIFICATION
    >,
});
