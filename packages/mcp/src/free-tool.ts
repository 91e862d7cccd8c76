import type { z } from "zod";
import type { Policy } from "../../verifier/src/index.ts";
import type { AskLeftOut } from "./left-out.ts";
import type { Service } from "./service.ts";

/** The definition of a tool for clients, free or paid. */
export interface ToolFacts<Input extends z.ZodObject = z.ZodObject, Output extends z.ZodObject = z.ZodObject> {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly input: Input;
  readonly output: Output;
}

export interface FreeParts {
  readonly service: Service;
  /** The log and witnesses that the user trusts; null if the caller may name them. */
  readonly logPolicy: Policy | null;
  /** Null if the log is not read for omissions. */
  readonly askLeftOut: AskLeftOut | null;
}

/** A tool that costs nothing and changes nothing. Failures are thrown, with a message for the agent. */
export interface FreeTool<Input extends z.ZodObject = z.ZodObject, Output extends z.ZodObject = z.ZodObject>
  extends ToolFacts<Input, Output> {
  /** The free routes it reads, as named in the service's route table. */
  readonly reads: readonly string[];
  readonly run: (input: z.infer<Input>, parts: FreeParts) => Promise<z.infer<Output>>;
}

/**
 * Checks a tool against its own types, then erases them for the list: the server passes the output of `input` to `run`.
 */
export const freeTool = <Input extends z.ZodObject, Output extends z.ZodObject>(
  tool: FreeTool<Input, Output>,
): FreeTool => tool as unknown as FreeTool;
