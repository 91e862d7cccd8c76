import type { z } from "zod";
import type { FreeParts, ToolFacts } from "./free-tool.ts";
import type { Product } from "./products.ts";
import type { Shop } from "./shop.ts";

export interface PaidParts extends FreeParts {
  readonly shop: Shop;
}

/** A tool that pays before it returns. Failures are thrown, with a message that states whether anything was signed. */
export interface PaidTool<Input extends z.ZodObject = z.ZodObject, Output extends z.ZodObject = z.ZodObject>
  extends ToolFacts<Input, Output> {
  readonly sells: readonly Product[];
  readonly run: (input: z.infer<Input>, parts: PaidParts) => Promise<z.infer<Output>>;
}

/**
 * Checks a tool against its own types, then erases them for the list: the server passes the output of `input` to `run`.
 */
export const paidTool = <Input extends z.ZodObject, Output extends z.ZodObject>(
  tool: PaidTool<Input, Output>,
): PaidTool => tool as unknown as PaidTool;
