import { Ajv2020, type ErrorObject, type ValidateFunction } from "ajv/dist/2020.js";

/** The parts of an OpenAPI 3.1 document that a check needs. */
export interface OpenApi {
  readonly servers: readonly [{ readonly url: string }];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly responses: Readonly<Record<string, Answered>> };
}

interface Operation {
  readonly responses: Readonly<Record<string, Answered | { readonly $ref: string }>>;
}

interface Answered {
  readonly content?: Readonly<Record<string, { readonly schema?: object }>>;
}

/** A request and its response. */
export interface Exchange {
  readonly method: string;
  readonly url: string;
  readonly status: number;
  readonly contentType: string | null;
  readonly text: string;
}

/** Checks exchanges against one document. Schemas are compiled on first use. */
export interface Contract {
  /** The reason why a response does not match the description, or null. */
  readonly complaint: (exchange: Exchange) => string | null;
}

const MAIN = "openapi.json";

export function contractOf(document: OpenApi): Contract {
  const ajv = new Ajv2020({ strict: false, allErrors: true, formats: ANY_FORMAT });
  ajv.addSchema(closed(document) as object, MAIN);
  const compiled = new Map<string, ValidateFunction>();
  const validator = (pointer: string): ValidateFunction => {
    const known = compiled.get(pointer) ?? ajv.compile({ $ref: `${MAIN}#${pointer}` });
    compiled.set(pointer, known);
    return known;
  };
  const patterns = Object.keys(document.paths).map((path) => ({ path, pattern: patternOf(path) }));
  return {
    complaint({ method, url, status, contentType, text }) {
      const { pathname } = new URL(url);
      const path = patterns.find(({ pattern }) => pattern.test(pathname))?.path;
      const operation = path === undefined ? undefined : document.paths[path]?.[method.toLowerCase()];
      if (path === undefined || operation === undefined) return outside(method, pathname, status);
      const place = ["paths", path, method.toLowerCase(), "responses", String(status)];
      const named = operation.responses[status];
      if (named === undefined) return `${method} ${path} is not described with status ${status}`;
      const shared = "$ref" in named ? named.$ref.split("/").slice(1) : null;
      const answered = "$ref" in named ? document.components.responses[String(shared?.at(-1))] : named;
      const type = contentType?.split(";")[0]?.trim() ?? "";
      const media = answered?.content?.[type];
      if (answered?.content === undefined) return text === "" ? null : `${method} ${path} ${status} has no body`;
      if (media === undefined) return `${method} ${path} ${status} is not described as ${type}`;
      if (media.schema === undefined) return null;
      const validate = validator([...(shared ?? place), "content", type, "schema"].map(step).join(""));
      const value = parsed(text);
      if (value === undefined) return `${method} ${path} ${status} is not JSON`;
      if (validate(value)) return null;
      return `${method} ${path} ${status} is not as described: ${explained(validate.errors ?? [])}`;
    },
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const explained = (errors: readonly ErrorObject[]): string =>
  errors.map(({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`).join("; ");

/** The complaint about an undescribed response. Only OPTIONS, HEAD, 308, 404, and 405 may be undescribed. */
const outside = (method: string, pathname: string, status: number): string | null =>
  ["OPTIONS", "HEAD"].includes(method) || [308, 404, 405].includes(status)
    ? null
    : `${method} ${pathname} is not described and answers ${status}`;

const step = (name: string): string => `/${encodeURIComponent(name.replaceAll("~", "~0").replaceAll("/", "~1"))}`;

/** OpenAPI cannot express that a parameter contains slashes. The one named `path` does. */
const patternOf = (path: string): RegExp =>
  new RegExp(
    `^${path
      .replace(/[.*+?^$()|[\]\\]/g, "\\$&")
      .replace("{path}", ".+")
      .replace(/\{\w+\}/g, "[^/]+")}$`,
  );

/** Makes undescribed members an error here, although published objects may gain members later. */
function closed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closed);
  if (typeof value !== "object" || value === null) return value;
  const parts = Object.fromEntries(Object.entries(value).map(([name, part]) => [name, closed(part)]));
  const isClosable = parts.type === "object" && typeof parts.properties === "object";
  return isClosable ? { additionalProperties: false, ...parts } : parts;
}

/** Formats are informative only. Patterns are checked. */
const ANY_FORMAT = { "date-time": true, date: true, uri: true } as const;
