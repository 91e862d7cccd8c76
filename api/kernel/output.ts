import type { z } from "zod";

/** What a route answers with: its media types; of JSON the schema, of anything else null. */
export type Output = Readonly<Record<string, z.ZodType | null>>;

/** A document. */
export const json = (schema: z.ZodType): Output => ({ "application/json": schema });

/** A document, or a page for browsers. */
export const jsonOrPage = (schema: z.ZodType): Output => ({ "application/json": schema, "text/html": null });

/** A parameter of a path or a query. Those of a path are always needed. */
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
