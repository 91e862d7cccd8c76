import { createHash } from "node:crypto";
import canonicalize from "canonicalize";
import { z } from "zod";
import { verifyDocument } from "../../../verifier/src/index.ts";
import type { Bought } from "../bought.ts";
import { maxPrice } from "../fields.ts";
import { PAID_OUTPUT } from "../paid-output.ts";
import { paidTool } from "../paid-tool.ts";
import { PRODUCTS } from "../products.ts";
import { type Service, ServiceError, signedBy } from "../service.ts";
import { CLAIM, conditionsFault } from "./claim.ts";

const PARTY = z.looseObject({ wallet: z.string() });

const VERDICT = z.looseObject({
  id: z.string(),
  verdict: z.enum(["release", "refund", "escalate"]),
  conditions_sha256: z.string(),
  deal_ref: z.string().nullable(),
  parties: z.looseObject({ payer: PARTY, payee: PARTY }).exactOptional(),
  policy_version: z.int(),
  facts: z.array(z.looseObject({})),
  verdict_url: z.string(),
  proof: z.looseObject({}),
});

type Claim = z.infer<typeof CLAIM>;

export const arbiterVerify = paidTool({
  name: "arbiter_verify",
  title: "Buy a delivery verdict",
  description:
    "Buys a signed verdict on a delivery that a machine can check: release, refund, or escalate, with the observed facts. Checks before returning it that it is signed and about exactly these conditions and parties.",
  input: CLAIM.extend({
    scored: z
      .boolean()
      .optional()
      .describe("Also reports the parties' risk tiers, which never change the verdict; costs more."),
    max_price: maxPrice,
  }),
  output: PAID_OUTPUT.extend({ verdict: VERDICT.exactOptional() }),
  sells: [PRODUCTS.verdict, PRODUCTS.scoredVerdict],
  async run({ scored = false, max_price, ...claim }, { shop, service }) {
    const fault = conditionsFault(claim);
    if (fault !== null) throw new Error(`The claim is not valid: ${fault}. Nothing was signed.`);
    const product = scored ? PRODUCTS.scoredVerdict : PRODUCTS.verdict;
    return shop.buy({ product, body: claim, maxPrice: max_price }, async (sale) => ({
      ...sale.paid,
      verdict: await checkedVerdict(sale, claim, service),
    }));
  },
});

/**
 * Returns the verdict, after checking that the service signed it and that it answers this claim. @throws
 * UntrustedAnswer
 */
async function checkedVerdict(sale: Bought, claim: Claim, service: Service): Promise<z.infer<typeof VERDICT>> {
  const checked = signedBy(service).then((expected) => verifyDocument(sale.text, expected));
  const { signature, document } = await checked.catch((error: Error) => {
    // The keys could not be read: the answer may still be valid, and is kept.
    if (error instanceof ServiceError) throw sale.unchecked(error);
    throw sale.refuse(`its signature could not be checked: ${error.message}`);
  });
  if (!signature.valid) throw sale.refuse(`its signature is not valid (${signature.code}): ${signature.reason}.`);
  const verdict = VERDICT.safeParse(document);
  if (!verdict.success) throw sale.refuse("the signed document is not a verdict.");
  if (verdict.data.conditions_sha256 !== conditionsSha256(claim))
    throw sale.refuse("it is about different conditions.");
  if (verdict.data.deal_ref !== (claim.deal_ref ?? null)) throw sale.refuse("it is about a different deal.");
  if (!isAbout(verdict.data.parties, claim.parties)) throw sale.refuse("it is about different parties.");
  return verdict.data;
}

/** Omitted parties are the deal's own. */
const isAbout = (found: z.infer<typeof VERDICT>["parties"], asked: Claim["parties"]): boolean =>
  asked === undefined ||
  (found?.payer.wallet === asked.payer.toLowerCase() && found.payee.wallet === asked.payee.toLowerCase());

/**
 * Returns the hash by which every verdict names its question: SHA-256 of the RFC 8785 form of the category and
 * conditions as submitted.
 */
const conditionsSha256 = ({ category, conditions }: Claim): string =>
  createHash("sha256")
    .update(canonicalize({ category, conditions }) as string)
    .digest("hex");
