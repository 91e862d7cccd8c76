import { z } from "zod";
import { freeTool } from "../free-tool.ts";
import { read } from "../service.ts";

const POLICY = z.looseObject({
  version: z.int(),
  effective_date: z.string(),
  categories: z.array(z.looseObject({ name: z.string(), summary: z.string() })),
  rules: z.array(z.looseObject({ number: z.int(), title: z.string(), text: z.string() })),
});

export const arbiterPolicy = freeTool({
  name: "arbiter_policy",
  title: "Read the arbiter's policy",
  description:
    "The arbiter's published policy: what it verifies, what it refuses, and how each observation leads to release, refund, or escalate. Read it before you call arbiter_verify. Free.",
  input: z.strictObject({}),
  output: POLICY,
  reads: ["/arbiter/policy"],
  run: async (_input, { service }) => (await read(service, "/arbiter/policy")).document as z.infer<typeof POLICY>,
});
