import { z } from "zod";
import { freeTool } from "../free-tool.ts";
import { read } from "../service.ts";

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

export const listTests = freeTool({
  name: "list_tests",
  title: "List the tests",
  description:
    "Lists the certification tests and other products, with prices in US dollars and how to run each one. Free.",
  input: z.strictObject({}),
  output: MENU,
  reads: ["/inspect"],
  run: async (_input, { service }) => (await read(service, "/inspect")).document as z.infer<typeof MENU>,
});
