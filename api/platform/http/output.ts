import type { z } from "zod";

/** What a route returns: its media types, with a schema for JSON and null for anything else. */
export type Output = Readonly<Record<string, z.ZodType | null>>;

/** JSON. */
export const json = (schema: z.ZodType): Output => ({ "application/json": schema });

/** JSON, or an HTML page for browsers. */
export const jsonOrPage = (schema: z.ZodType): Output => ({ "application/json": schema, "text/html": null });

/** A path or query parameter. Path parameters are always required. */
export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query";
  readonly description: string;
  readonly required: boolean;
  readonly schema: z.ZodType;
}

type Named = Pick<Parameter, "name" | "description" | "schema">;

export const inPath = (parameter: Named): Parameter => ({ ...parameter, in: "path", required: true });
export const inQuery = (parameter: Named): Parameter => ({ ...parameter, in: "query", required: true });
export const optionalInQuery = (parameter: Named): Parameter => ({ ...parameter, in: "query", required: false });
