import { z } from "zod";

/** A JSON Schema (2020-12), as JSON. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** `output`: what the service writes; `input`: what it reads, before it is parsed. */
type Direction = "output" | "input";

type Override = NonNullable<NonNullable<Parameters<typeof z.toJSONSchema>[1]>["override"]>;

/**
 * What a published schema shall not say: that a document never gets another member, that hex digits have one letter case where the
 * service takes both (a pattern has no flags), Unicode properties, which most other languages' patterns do not know, and that a number
 * ends where JavaScript's exact integers do.
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

/** One schema that stands alone: its named parts are in `$defs`. */
export function jsonSchema(schema: z.ZodType, io: Direction): JsonSchema {
  const { $ref: _, $schema: __, $defs = {}, ...own } = draw(schema, io);
  const { id = "" } = schema.meta() ?? {};
  const { [id]: named, ...parts } = $defs;
  return { ...own, ...named, ...(Object.keys(parts).length > 0 && { $defs: parts }) };
}

/** The schema that a part of a document stands for, when it only refers to it. */
function resolved(schema: JsonSchema, root: JsonSchema): JsonSchema {
  const [, name] = /^#\/\$defs\/(.+)$/.exec(String(schema.$ref ?? "")) ?? [];
  return (root.$defs as Readonly<Record<string, JsonSchema>> | undefined)?.[name ?? ""] ?? schema;
}

/** The variants of a schema; itself when there is one only. */
export function variantsOf(schema: JsonSchema): readonly JsonSchema[] {
  const found = resolved(schema, schema);
  const { anyOf = [found], oneOf = anyOf } = found as Readonly<Record<string, readonly JsonSchema[]>>;
  return oneOf.map((one) => ({ ...resolved(one, schema), $defs: schema.$defs }));
}

/** A schema in a few words, for places that have little room: the first members and their types, of all variants. */
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

/** The types of schemas; nothing when one of them names none. */
function typeOf(schemas: readonly JsonSchema[]): JsonSchema {
  const [type, ...more] = new Set(schemas.map((one) => one.type));
  if (more.length === 0) return type === undefined ? {} : { type };
  return more.includes(undefined) || type === undefined ? {} : { type: [type, ...more] };
}

/** Schemas of one document: `of` gives each as it stands where it is used, `named` are those that it refers to. */
export interface SchemaSet {
  readonly of: (schema: z.ZodType) => JsonSchema;
  readonly named: Readonly<Record<string, JsonSchema>>;
}

/** Draws schemas together, so that a part with an id is written once. `root` is where the named ones will stand, with `/` at its end. */
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
