import type { z } from "zod";
import { ABOUT } from "../../platform/about.ts";
import { type JsonSchema, schemaSet } from "../../platform/http/json-schema.ts";
import type { Listed, Tag } from "../../platform/http/route.ts";
import { SITE_NAME } from "../../platform/page/page.ts";
import { PAYMENT_REQUIRED } from "../../payments/payment-schemas.ts";
import { SIGN_IN_REQUIRED } from "../../purchases/purchase-schemas.ts";
import { SIGN_IN_HEADER } from "../../purchases/sign-in.ts";
import { SECURITY_PATH } from "../security-txt.ts";
import { bodySchema, isPayable, operation, type Schemas, templatePath } from "./operation.ts";
import { PROBLEM, problemResponses, problemStatuses } from "./problems.ts";

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
  Settlement: "What became of a USDC authorization, no matter who signed it.",
  Café: "Paid routes to try out on the test network.",
  Board: "Certified agents and anonymous totals.",
  Keys: "Public keys for signed documents.",
  Discovery: "Service descriptions, documentation and status.",
};

/** The version of the interface, which the service and its packages share. */
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
    "How the payment settled, as base64-encoded JSON; in a 503 `payment_pending`, that its settlement is pending.",
  ),
  IdempotentReplay: header("`true` if the response is a replay for a payment that was sent before."),
};

/** The OpenAPI 3.1 description of every route in the table. */
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

/** The schemas of what routes write, and of their parameters. */
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
  content: { "application/json": { schema } },
});

const signInRequired = (schema: JsonSchema) => ({
  description:
    "A challenge to sign in with, once, within five minutes. Nothing is to be paid: it offers no terms. Its body says what was wrong with a sign-in that was refused.",
  headers: { "PAYMENT-REQUIRED": header("The challenge, in `extensions` of x402 version 2, as base64-encoded JSON.") },
  content: { "application/json": { schema } },
});
