import { conditionsSha256 } from "./claim.ts";
import { POLICY_VERSIONS } from "./policy/index.ts";
import type { Variant } from "./products.ts";

const CLAIM = {
  category: "http-delivery",
  conditions: { url: "https://merchant.example/report.pdf", expect_status: 200, min_bytes: 1024 },
  deal_ref: "order-4711",
};
const PARTIES = {
  payer: "0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
  payee: "0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc",
};

export const EXAMPLE_INPUT: Readonly<Record<Variant, Readonly<Record<string, unknown>>>> = {
  plain: CLAIM,
  scored: { ...CLAIM, parties: PARTIES },
};

/** The members of a verdict that callers read first. */
export const exampleOutput = (variant: Variant, baseUrl: string): Readonly<Record<string, unknown>> => ({
  id: "0123456789abcdef0123456789abcdef",
  verdict: "release",
  category: CLAIM.category,
  conditions_sha256: conditionsSha256(CLAIM.category, CLAIM.conditions),
  deal_ref: CLAIM.deal_ref,
  policy_version: POLICY_VERSIONS.at(-1)?.policy.version,
  verdict_url: `${baseUrl}/arbiter/verdict/0123456789abcdef0123456789abcdef`,
  ...(variant === "scored" && {
    parties: {
      payer: { wallet: PARTIES.payer, score: 92, tier: "A" },
      payee: { wallet: PARTIES.payee, score: 61, tier: "C" },
    },
  }),
});
