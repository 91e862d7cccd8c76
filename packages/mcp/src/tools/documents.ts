import { z } from "zod";
import { type FreeTool, freeTool, type ToolFacts } from "../free-tool.ts";
import { LIMITS } from "../products.ts";
import { read } from "../service.ts";

/** A tool without input that returns a document of the service. */
const documentTool = <Output extends z.ZodObject>(
  path: string,
  facts: Omit<ToolFacts<z.ZodObject, Output>, "input">,
): FreeTool =>
  freeTool({
    ...facts,
    input: z.strictObject({}),
    reads: [path],
    run: async (_input, { service }) => (await read(service, path)).document as z.infer<Output>,
  });

const OFFER = { id: z.string(), method: z.string(), url: z.string(), price: z.string(), price_atomic: z.string() };

const MENU = z.looseObject({
  menu: z.array(
    z.looseObject({
      ...OFFER,
      total_cost: z.string(),
      capability: z.string(),
      steps: z.array(z.string()),
      how_to_run: z.string(),
    }),
  ),
  other_products: z.array(z.looseObject(OFFER)),
});

export const listTests = documentTool("/inspect", {
  name: "list_tests",
  title: "List the tests",
  description:
    "Lists the certification tests and other products, with prices in US dollars and how to run each one. Free.",
  output: MENU,
});

const POLICY = z.looseObject({
  version: z.int(),
  effective_date: z.string(),
  categories: z.array(z.looseObject({ name: z.string(), summary: z.string() })),
  rules: z.array(z.looseObject({ number: z.int(), title: z.string(), text: z.string() })),
});

export const arbiterPolicy = documentTool("/arbiter/policy", {
  name: "arbiter_policy",
  title: "Read the arbiter's policy",
  description:
    "The arbiter's published policy: what it verifies, what it refuses, and how each observation leads to release, refund, or escalate. Read it before you call arbiter_verify. Free.",
  output: POLICY,
});

const ESCROW = z.looseObject({
  contracts: z.array(z.looseObject({ network: z.string(), address: z.string() })),
  fee_policy: z.looseObject({ fee_bps: z.number() }),
  verdict_policy: z.looseObject({ timeout_seconds: z.number() }),
});

export const escrowInfo = documentTool("/escrow", {
  name: "escrow_info",
  title: "Read about the escrow",
  description: `The non-custodial escrow: its contracts, its fee, what releases or refunds a payment, the refund after ${LIMITS.escrowTimeoutMinutes} minutes, and how merchants and buyers integrate it. Free.`,
  output: ESCROW,
});
