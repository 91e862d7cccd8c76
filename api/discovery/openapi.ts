import { z } from "zod";
import { PAYMENT_REQUIRED } from "../payments/index.ts";
import { ABOUT } from "../platform/about.ts";
import type { Output, Parameter } from "../platform/http/answer.ts";
import { PROBLEMS, type ProblemCode, type problemBody } from "../platform/http/errors.ts";
import { type JsonSchema, schemaSet } from "../platform/http/json-schema.ts";
import { isPaid, isQuoted, type Listed, networksOfSignIn, type Tag } from "../platform/http/route.ts";
import { formatUsd } from "../platform/money.ts";
import { NETWORKS } from "../platform/networks.ts";
import { SITE_NAME } from "../platform/page/page.ts";
import { SIGN_IN_HEADER, SIGN_IN_REQUIRED } from "../purchases/index.ts";
import { paidListing } from "./paid-listing.ts";
import { SECURITY_PATH } from "./security-txt.ts";

const CODES = Object.keys(PROBLEMS) as ProblemCode[];
const TITLES = Object.values(PROBLEMS).map(({ title }) => title);
const STATUSES = [...new Set(Object.values(PROBLEMS).map(({ status }) => status))];

/** The body of every problem (RFC 9457). */
const PROBLEM = z
  .object({
    type: z.string(),
    title: z.enum(TITLES),
    status: z.literal(STATUSES),
    detail: z.string(),
    code: z.enum(CODES),
    request_id: z.string(),
    errors: z
      .array(
        z.object({
          path: z.string().meta({ description: "The invalid field of the body, as a dot-separated path." }),
          message: z.string(),
          rule: z.int().exactOptional().meta({ description: "The arbiter policy rule that refuses it." }),
        }),
      )
      .exactOptional(),
    diagnostic: z
      .object({
        code: z.enum(CODES),
        retry: z.literal("same").meta({ description: "Send the same request again, with the same payment." }),
        after: z.number().exactOptional().meta({ description: "The seconds to wait first." }),
      })
      .exactOptional()
      .meta({ description: "How to retry. Present in every 503." }),
  })
  .meta({ id: "Problem" }) satisfies z.ZodType<ReturnType<typeof problemBody>>;

/** Problems that any request can get. */
const OF_ALL: readonly ProblemCode[] = [
  "body_too_large",
  "too_many_requests",
  "headers_too_large",
  "request_timeout",
  "internal_error",
  "not_available",
];

/** Problems that any request with a payment can get. */
const OF_PAYABLE: readonly ProblemCode[] = [
  "malformed_request",
  "malformed_payment",
  "payment_conflict",
  "unacceptable",
  "payer_refused",
  "payment_pending",
];

/** The statuses of the problems that a route can return. */
function problemStatuses(own: readonly ProblemCode[], isPayable: boolean): readonly number[] {
  const codes = [...OF_ALL, ...(isPayable ? OF_PAYABLE : []), ...own];
  return [...new Set(codes.map((code) => PROBLEMS[code].status))].sort((one, other) => one - other);
}

const problemName = (status: number): string => `Problem${status}`;

/** For browsers. */
const PAGE = { "text/html": {} };

/** `components.responses` for these statuses. */
const problemResponses = (schema: object, statuses: Iterable<number>): Readonly<Record<string, object>> =>
  Object.fromEntries(
    [...new Set(statuses)].map((status) => {
      const codes = CODES.filter((code) => PROBLEMS[code].status === status);
      return [
        problemName(status),
        {
          description: codes.map((code) => `${PROBLEMS[code].title} (\`${code}\`)`).join(" · "),
          content: { "application/problem+json": { schema }, ...PAGE },
        },
      ];
    }),
  );

/** Write a schema where the document uses it, by reference if the schema has an id. */
export interface Schemas {
  readonly output: (schema: z.ZodType) => JsonSchema;
  readonly input: (schema: z.ZodType) => JsonSchema;
}

/** The path in OpenAPI notation: `/cert/:id` is `/cert/{id}`, and `/log/tile/*` is `/log/tile/{path}`. */
export const templatePath = (path: string): string => path.replace(/:(\w+)/g, "{$1}").replace(/\*$/, "{path}");

/** `POST /arbiter/verify` becomes `postArbiterVerify`. It is unique because method and path are. */
export const operationId = ({ method, path }: Pick<Listed, "method" | "path">): string =>
  `${method.toLowerCase()}${path
    .split(/[^A-Za-z0-9]+/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join("")}`;

/** Whether a request to the route may carry a payment. */
export const isPayable = (route: Listed): boolean => isPaid(route) || isQuoted(route);

/** The documented body, or null if there is none. */
export const bodySchema = (route: Listed): z.ZodType | null => route.body ?? (isPaid(route) ? route.input : null);

const operation = (route: Listed, schemas: Schemas) => ({
  operationId: operationId(route),
  summary: route.summary,
  ...("description" in route && { description: route.description }),
  tags: [route.tag],
  // The payment is the authorization, so no security scheme applies.
  security: [],
  ...parameters(route, schemas),
  ...requestBody(route, schemas),
  responses: responses(route, schemas),
  ...paymentInfo(route),
});

function parameters(route: Listed, { output, input }: Schemas) {
  const list = [
    ...(route.parameters ?? []).map((parameter: Parameter) => ({ ...parameter, schema: output(parameter.schema) })),
    ...fromBody(route, input),
    ...headersOf(route).map((name) => ({ $ref: `#/components/parameters/${name}` })),
  ];
  return list.length === 0 ? {} : { parameters: list };
}

/** Body members that may also be sent in the query. */
function fromBody(route: Listed, input: Schemas["input"]) {
  if (!isPaid(route)) return [];
  const { properties } = input(route.input) as { readonly properties?: Readonly<Record<string, JsonSchema>> };
  return (route.hooks?.query ?? []).map((name) => ({
    name,
    in: "query",
    required: false,
    description: "May be sent here instead of in the body.",
    schema: properties?.[name] ?? {},
  }));
}

/** Names in `components.parameters`. */
const PAYMENT_HEADERS = ["PaymentSignature", "XPayment"];

const headersOf = (route: Listed): readonly string[] => [
  ...(isPayable(route) ? PAYMENT_HEADERS : []),
  ...(asksToSignIn(route) ? ["SignInWithX"] : []),
];

const asksToSignIn = (route: Listed): boolean => networksOfSignIn(route).length > 0;

function requestBody(route: Listed, { input }: Schemas) {
  const schema = bodySchema(route);
  if (schema === null) return isPayable(route) && !isQuoted(route) ? { requestBody: NO_BODY } : {};
  const example = isPaid(route) ? { example: route.example.input } : {};
  const content = { "application/json": { schema: input(schema), ...example } };
  // A paid route returns its terms to an empty request.
  return { requestBody: { required: !isPaid(route), content } };
}

const NO_BODY = { required: false, description: "Ignored.", content: { "application/json": { schema: {} } } };

function responses(route: Listed, schemas: Schemas): Readonly<Record<string, object>> {
  const others = "others" in route ? Object.entries(route.others ?? {}) : [];
  const headers = isPayable(route) ? { headers: SETTLED_HEADERS } : {};
  const ref = (name: string) => ({ $ref: `#/components/responses/${name}` });
  const problems = problemStatuses(route.problems ?? [], isPayable(route));
  return {
    200: { description: route.summary, ...headers, ...content(route.output, schemas) },
    ...(isPayable(route) && { 402: ref("PaymentRequired") }),
    ...(asksToSignIn(route) && { 402: ref("SignInRequired") }),
    ...Object.fromEntries(problems.map((status) => [status, ref(problemName(status))])),
    ...Object.fromEntries(
      others.map(([status, output]) => [
        status,
        {
          description: Object.keys(output).length === 0 ? "No body" : "Same as 200",
          ...content(output, schemas),
        },
      ]),
    ),
  };
}

function content(output: Output, schemas: Schemas) {
  const media = Object.entries(output);
  const described = (schema: z.ZodType | null) => (schema === null ? {} : { schema: schemas.output(schema) });
  return media.length === 0 ? {} : { content: Object.fromEntries(media.map(([type, one]) => [type, described(one)])) };
}

const SETTLED_HEADERS = {
  "PAYMENT-RESPONSE": { $ref: "#/components/headers/PaymentResponse" },
  "X-Idempotent-Replay": { $ref: "#/components/headers/IdempotentReplay" },
};

function paymentInfo(route: Listed) {
  const paid = paidListing(route);
  if (paid === null) return {};
  const { schemes, networks, price } = paid;
  const terms = networks.map((network) => ({
    network,
    ...{ asset: NETWORKS[network].usdc.address, amount: price.toString() },
  }));
  return {
    "x-payment-info": {
      price: { mode: "fixed", currency: "USD", amount: formatUsd(price) },
      protocols: terms.flatMap((on) => schemes.map((scheme) => ({ x402: { scheme, ...on } }))),
    },
  };
}

export interface OpenApiParts {
  readonly routes: readonly Listed[];
  /** No trailing slash. */
  readonly baseUrl: string;
  readonly version: string;
  /** A URI, such as `mailto:security@trust.example`. */
  readonly contact: string;
}

const ROOT = "#/components/schemas/";

const TAGS: Readonly<Record<Tag, string>> = {
  Certification: "Tests that an agent pays to take, and the record of each wallet.",
  "Risk score": "A wallet's payment risk from 0 to 100, with every fact behind it.",
  Arbiter: "Signed verdicts on machine-verifiable deliveries.",
  Escrow: "A contract that holds a payment until the delivery is evaluated.",
  "Transparency log": "Every record in one append-only log that witnesses cosign (C2SP tlog-tiles).",
  Settlement: "The status of any USDC authorization, no matter who signed it.",
  Café: "Paid routes for practice on the test network.",
  Board: "Certified agents and anonymous totals.",
  Keys: "Public keys for signed documents.",
  Discovery: "Service descriptions, documentation and status.",
};

const LICENSE = { name: "MIT License", identifier: "MIT" };

const header = (description: string) => ({ description, schema: { type: "string" } });

const PARAMETERS = {
  PaymentSignature: {
    name: "PAYMENT-SIGNATURE",
    in: "header",
    required: false,
    ...header("The signed x402 version 2 payment, as base64-encoded JSON."),
  },
  XPayment: {
    name: "X-PAYMENT",
    in: "header",
    required: false,
    ...header("The signed x402 version 1 payment, as base64-encoded JSON."),
  },
  SignInWithX: {
    name: SIGN_IN_HEADER,
    in: "header",
    required: false,
    ...header("The signed challenge of the 402 (x402's extension sign-in-with-x), as base64-encoded JSON."),
  },
};

const HEADERS = {
  PaymentResponse: header(
    "The settlement result, as base64-encoded JSON. In a 503 `payment_pending`, the settlement is pending.",
  ),
  IdempotentReplay: header("`true` if the response is a replay of the first response to the same payment."),
};

/** Returns the OpenAPI 3.1 document with every route in the table. */
export function openApiDocument(parts: OpenApiParts) {
  const { routes, baseUrl } = parts;
  const outputs = schemaSet([PROBLEM, PAYMENT_REQUIRED, SIGN_IN_REQUIRED, ...routes.flatMap(written)], "output", ROOT);
  const inputs = schemaSet(routes.flatMap(read), "input", ROOT);
  const schemas: Schemas = { output: outputs.of, input: inputs.of };
  return {
    openapi: "3.1.0",
    info: info(parts),
    servers: [{ url: baseUrl }],
    security: [],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    "x-agentcash-guidance": { llmsTxtUrl: `${baseUrl}/llms.txt` },
    paths: paths(routes, schemas),
    components: {
      schemas: { ...inputs.named, ...outputs.named },
      parameters: PARAMETERS,
      headers: HEADERS,
      responses: {
        PaymentRequired: paymentRequired(outputs.of(PAYMENT_REQUIRED)),
        SignInRequired: signInRequired(outputs.of(SIGN_IN_REQUIRED)),
        ...problemResponses(outputs.of(PROBLEM), routes.flatMap(problemsOf)),
      },
    },
  };
}

function info({ version, contact, baseUrl }: OpenApiParts) {
  const [, email] = /^mailto:([^?]+@[^?]+\.[^?]+)/.exec(contact) ?? [];
  return {
    title: SITE_NAME,
    version,
    description: ABOUT,
    license: LICENSE,
    termsOfService: `${baseUrl}/terms`,
    contact: { name: SITE_NAME, url: `${baseUrl}${SECURITY_PATH}`, ...(email && { email }) },
    "x-guidance": `Send a request without a payment to see its terms (402), sign them with any x402 client, and repeat the request. See ${baseUrl}/llms.txt for details.`,
  };
}

/** The schemas of a route's responses and parameters. */
const written = ({ output, parameters = [], ...route }: Listed): readonly z.ZodType[] =>
  [
    ...Object.values(output),
    ...("others" in route ? Object.values(route.others ?? {}).flatMap(Object.values<z.ZodType | null>) : []),
    ...parameters.map(({ schema }) => schema),
  ].filter((schema) => schema !== null);

const read = (route: Listed): readonly z.ZodType[] => {
  const input = "input" in route ? [route.input] : [];
  return [...input, ...[bodySchema(route)].filter((schema) => schema !== null)];
};

const problemsOf = (route: Listed): readonly number[] => problemStatuses(route.problems ?? [], isPayable(route));

function paths(routes: readonly Listed[], schemas: Schemas): Readonly<Record<string, object>> {
  const found: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    const path = templatePath(route.path);
    found[path] = { ...found[path], [route.method.toLowerCase()]: operation(route, schemas) };
  }
  return found;
}

const paymentRequired = (schema: JsonSchema) => ({
  description:
    "The terms: x402 version 2 in the header, version 1 in the body. Sign either one and repeat the request.",
  headers: { "PAYMENT-REQUIRED": header("The x402 version 2 terms, as base64-encoded JSON.") },
  content: { "application/json": { schema }, ...PAGE },
});

const signInRequired = (schema: JsonSchema) => ({
  description:
    "A challenge to sign in with, valid once and for five minutes. No payment is due, so it has no terms. If a sign-in was refused, the body explains why.",
  headers: { "PAYMENT-REQUIRED": header("The challenge, in `extensions` of x402 version 2, as base64-encoded JSON.") },
  content: { "application/json": { schema }, ...PAGE },
});
