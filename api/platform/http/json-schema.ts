import { z } from "zod";

/** A JSON Schema (2020-12), as JSON. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** `output`: what the service writes; `input`: what it reads, before parsing. */
type Direction = "output" | "input";

type Override = NonNullable<NonNullable<Parameters<typeof z.toJSONSchema>[1]>["override"]>;

/**
 * Removes what a published schema must not claim: that a document never gains members, that hex digits are in one case
 * where the service accepts both (a pattern has no flags), that a number ends at JavaScript's safe integers, and
 * Unicode property patterns, which most other languages cannot read.
 */
const soften =
  (io: Direction): Override =>
  ({ zodSchema, jsonSchema }) => {
    if (io === "output" && jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
    if (ignoresCase(zodSchema) || /\\[pP]\{/.test(jsonSchema.pattern ?? "")) delete jsonSchema.pattern;
    if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
    if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
  };

const ignoresCase = ({ _zod: { def } }: z.core.$ZodType): boolean =>
  (def.checks ?? []).some((check) => {
    const { pattern } = check._zod.def as { readonly pattern?: RegExp };
    return pattern?.ignoreCase === true;
  });

const draw = (schema: z.ZodType, io: Direction) =>
  z.toJSONSchema(schema, { io, unrepresentable: "any", override: soften(io) });

/** A standalone schema: its named parts are in `$defs`. */
export function jsonSchema(schema: z.ZodType, io: Direction): JsonSchema {
  const { $ref: _, $schema: __, $defs = {}, ...own } = draw(schema, io);
  const { id = "" } = schema.meta() ?? {};
  const { [id]: named, ...parts } = $defs;
  return { ...own, ...named, ...(Object.keys(parts).length > 0 && { $defs: parts }) };
}

/** Follows a `$ref` to the schema it names. */
function resolved(schema: JsonSchema, root: JsonSchema): JsonSchema {
  const [, name] = /^#\/\$defs\/(.+)$/.exec(String(schema.$ref ?? "")) ?? [];
  return (root.$defs as Readonly<Record<string, JsonSchema>> | undefined)?.[name ?? ""] ?? schema;
}

/** The variants of a schema, or the schema itself if it has only one. */
export function variantsOf(schema: JsonSchema): readonly JsonSchema[] {
  const found = resolved(schema, schema);
  const { anyOf = [found], oneOf = anyOf } = found as Readonly<Record<string, readonly JsonSchema[]>>;
  return oneOf.map((one) => ({ ...resolved(one, schema), $defs: schema.$defs }));
}

/** A short form of a schema, for tight spots: the top-level members and their types, across all variants. */
export function outline(schema: JsonSchema): JsonSchema {
  const variants = variantsOf(schema);
  const [{ type, items } = {}] = variants;
  if (type === "array") return { type, items: outline({ ...(items as JsonSchema), $defs: schema.$defs }) };
  const members = variants.flatMap(({ properties = {} }) => Object.entries(properties as Record<string, JsonSchema>));
  const typed = [...Map.groupBy(members, ([name]) => name)].map(([name, found]) => [
    name,
    typeOf(found.map(([, member]) => resolved(member, schema))),
  ]);
  return { ...(type !== undefined && { type }), properties: Object.fromEntries(typed) };
}

/** The union of the schemas' types, or nothing if any of them has no type. */
function typeOf(schemas: readonly JsonSchema[]): JsonSchema {
  const [type, ...more] = new Set(schemas.map((one) => one.type));
  if (more.length === 0) return type === undefined ? {} : { type };
  return more.includes(undefined) || type === undefined ? {} : { type: [type, ...more] };
}

/** The schemas of one document: `of` returns each as it appears in place, `named` are the ones those refer to. */
export interface SchemaSet {
  readonly of: (schema: z.ZodType) => JsonSchema;
  readonly named: Readonly<Record<string, JsonSchema>>;
}

/**
 * Generates schemas together, so that each part with an id is written once. `root` is where the named ones will live
 * and ends with `/`.
 */
export function schemaSet(schemas: Iterable<z.ZodType>, io: Direction, root: string): SchemaSet {
  const all = [...new Set(schemas)];
  const shape = Object.fromEntries(all.map((schema, index) => [`s${index}`, schema]));
  const text = JSON.stringify(draw(z.object(shape), io)).replaceAll('"#/$defs/', `"${root}`);
  const { properties = {}, $defs = {} } = JSON.parse(text) as Record<
    "properties" | "$defs",
    Record<string, JsonSchema> | undefined
  >;
  const drawn = new Map(all.map((schema, index) => [schema, properties[`s${index}`]]));
  return {
    of(schema) {
      const found = drawn.get(schema);
      if (found === undefined) throw new Error("a schema that was not drawn");
      return found;
    },
    named: $defs,
  };
}
