import type { z } from "zod";
import type { JsonSchema } from "../../platform/http/json-schema.ts";
import { formatUsd } from "../../platform/money.ts";
import { NETWORKS } from "../../platform/networks.ts";
import type { Output, Parameter } from "../../platform/http/output.ts";
import { isPaid, isQuoted, type Listed, networksOfSignIn } from "../../platform/http/route.ts";
import { paidListing } from "../paid-listing.ts";
import { problemName, problemStatuses } from "./problems.ts";

/** How one document's schemas are written where they are used. */
export interface Schemas {
  readonly output: (schema: z.ZodType) => JsonSchema;
  readonly input: (schema: z.ZodType) => JsonSchema;
}

/** The path in OpenAPI notation: `/cert/:id` is `/cert/{id}`, and `/log/tile/*` is `/log/tile/{path}`. */
export const templatePath = (path: string): string => path.replace(/:(\w+)/g, "{$1}").replace(/\*$/, "{path}");

/** `POST /arbiter/verify` becomes `postArbiterVerify`, unique because method and path are. */
export const operationId = ({ method, path }: Pick<Listed, "method" | "path">): string =>
  `${method.toLowerCase()}${path
    .split(/[^A-Za-z0-9]+/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join("")}`;

/** Whether a request to the route may carry a payment. */
export const isPayable = (route: Listed): boolean => isPaid(route) || isQuoted(route);

/** The body as documented to callers; null if there is none. */
export const bodySchema = (route: Listed): z.ZodType | null => route.body ?? (isPaid(route) ? route.input : null);

/** One operation of the document. */
export const operation = (route: Listed, schemas: Schemas) => ({
  operationId: operationId(route),
  summary: route.summary,
  ...("description" in route && { description: route.description }),
  tags: [route.tag],
  // Payment is the authorization; nothing else is required.
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

/** Body members that may be given in the query instead. */
function fromBody(route: Listed, input: Schemas["input"]) {
  if (!isPaid(route)) return [];
  const { properties } = input(route.input) as { readonly properties?: Readonly<Record<string, JsonSchema>> };
  return (route.query ?? []).map((name) => ({
    name,
    in: "query",
    required: false,
    description: "May be sent here instead of in the body.",
    schema: properties?.[name] ?? {},
  }));
}

/** Of the parameters in `components`. */
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
  // A paid route shows its terms to any empty request.
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

/** Price and terms of a route with a fixed price. */
function paymentInfo(route: Listed) {
  const paid = paidListing(route);
  if (paid === null) return {};
  const { schemes, network, price } = paid;
  const terms = { network, asset: NETWORKS[network].usdc.address, amount: price.toString() };
  return {
    "x-payment-info": {
      price: { mode: "fixed", currency: "USD", amount: formatUsd(price) },
      protocols: schemes.map((scheme) => ({ x402: { scheme, ...terms } })),
    },
  };
}
