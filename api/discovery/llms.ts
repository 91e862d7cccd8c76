import { BEHAVIORAL_PRODUCTS, scam, VALID_FOR_DAYS } from "../certificates/index.ts";
import { ABOUT } from "../platform/about.ts";
import { PROBLEMS } from "../platform/http/errors.ts";
import { type JsonSchema, jsonSchema, variantsOf } from "../platform/http/json-schema.ts";
import { isPaid, type Listed, networksOfSignIn, type Tag } from "../platform/http/route.ts";
import { MAIN_NETWORK, NETWORKS, REHEARSED_ON, TEST_NETWORK } from "../platform/networks.ts";
import { SITE_NAME } from "../platform/page/page.ts";
import { SIGN_IN, SIGN_IN_HEADER } from "../purchases/index.ts";
import { bodySchema, isPayable, templatePath } from "./openapi.ts";
import { costOf, paidListing } from "./paid-listing.ts";

export interface LlmsParts {
  readonly routes: readonly Listed[];
  /** No trailing slash. */
  readonly baseUrl: string;
}

const PAYING = [
  "There are no accounts or API keys: the payment is the authorization. Any standard x402 client works.",
  "1. Send the request without a payment. The response is a 402 with the terms in the `PAYMENT-REQUIRED` header (version 2) and in the body (version 1).",
  "2. Sign the USDC authorization (EIP-3009) they ask for; it costs no gas.",
  "3. Repeat the request with the `PAYMENT-SIGNATURE` header (version 2) or the `X-PAYMENT` header (version 1). The response comes once the payment has settled.",
  "4. If the response is lost, send the same header again: you get the same result, with `X-Idempotent-Replay: true`, and are not charged again. Do this before you sign anything new.",
];

const OTHERS = BEHAVIORAL_PRODUCTS.filter((product) => product !== scam.product).map((product) => `\`${product}\``);
const REHEARSING = `Before the first behavioral test, rehearse: a FAIL is public and permanent, and counts for ${VALID_FOR_DAYS} days. \`POST /rehearsal/scam/start\` (or ${OTHERS.join(", ")}) runs the same test in ${NETWORKS[TEST_NETWORK].money}, records nothing, explains what went wrong, and shows a program that passes. Use a separate wallet. Before a seller's exam, use \`POST /rehearsal/seller\`.`;

const REHEARSAL_NOTICE = `This whole installation is a rehearsal in ${NETWORKS[MAIN_NETWORK].money}. Its certificates, scores, and verdicts don't count anywhere else.`;

/** The first steps of an agent, in the order it needs them. */
const firstSteps = ({ routes, baseUrl }: LlmsParts): string =>
  [
    "First steps for an agent:",
    `1. Look up your counterparty, for free: \`GET ${baseUrl}/verify?wallet=0x…\` for an agent, \`GET ${baseUrl}/verify?origin=https://…\` for a seller.`,
    `2. Prove that you can pay: \`POST ${baseUrl}/test/basic\` with any x402 client. It costs ${routes.filter(({ path }) => path === "/test/basic").map(costOf)} on ${NETWORKS[MAIN_NETWORK].name}; you don't need an account or ETH. The response has your certificate. [A complete program](${baseUrl}/docs/pay).`,
    `3. Before you sign again for the same purchase, look up the first payment, for free: \`GET ${baseUrl}/settlement?network=${NETWORKS[MAIN_NETWORK].key}&from=0x…&nonce=0x…\`. [How](${baseUrl}/docs/settled).`,
    `4. If you speak MCP, all free tools that don't need a key are at \`${baseUrl}/mcp\`. [Tools that pay](${baseUrl}/integrations#mcp).`,
    `5. If something fails, read [what the code means](${baseUrl}/docs/errors). [Documentation by task](${baseUrl}/docs).`,
  ].join("\n");

/** Returns `/llms.txt`: an overview in the llmstxt.org format. */
export const llmsTxt = ({ routes, baseUrl }: LlmsParts): string =>
  [
    `# ${SITE_NAME}`,
    `> ${ABOUT}`,
    ...(REHEARSED_ON === null ? [] : [REHEARSAL_NOTICE]),
    firstSteps({ routes, baseUrl }),
    PAYING.join("\n"),
    REHEARSING,
    ...byTag(routes).flatMap(([tag, own]) => [`## ${tag}`, own.map((route) => item(route, baseUrl)).join("\n")]),
    "## Optional",
    `- [Complete reference](${baseUrl}/llms-full.txt): every route with its parameters, fields and errors`,
  ].join("\n\n");

function item(route: Listed, baseUrl: string): string {
  const path = templatePath(route.path);
  return `- [${route.method} ${path}](${baseUrl}${path}): ${route.summary}${cost(route)}`;
}

function cost(route: Listed): string {
  const text = costOf(route);
  return text === null ? "" : ` (${text})`;
}

/** Returns `/llms-full.txt`: every route in full, as one text. */
export const llmsFullTxt = ({ routes, baseUrl }: LlmsParts): string =>
  [
    `# ${SITE_NAME}`,
    `> ${ABOUT}`,
    ...(REHEARSED_ON === null ? [] : [REHEARSAL_NOTICE]),
    `Base URL: ${baseUrl}`,
    firstSteps({ routes, baseUrl }),
    "## How to pay",
    PAYING.join("\n"),
    REHEARSING,
    ...byTag(routes).flatMap(([tag, own]) => [`## ${tag}`, ...own.map(chapter)]),
    "## Errors",
    "Every error is `application/problem+json` (RFC 9457) with `type`, `title`, `status`, `detail`, `code`, `request_id`, and `errors` when body fields are invalid. The codes:",
    Object.entries(PROBLEMS)
      .map(([code, { status, title }]) => `- \`${code}\` (${status}): ${title}`)
      .join("\n"),
  ].join("\n\n");

function chapter(route: Listed): string {
  const body = bodySchema(route);
  return [
    `### ${route.method} ${templatePath(route.path)}`,
    `${route.summary}${cost(route)}${"description" in route ? `\n${route.description}` : ""}`,
    ...terms(route),
    ...(route.parameters ?? []).map(
      ({ name, in: place, required, description }) =>
        `- \`${name}\` (${place}${required ? "" : ", optional"}): ${description}`,
    ),
    ...(isPaid(route) && route.hooks?.query
      ? [`- may be sent in the query instead of the body: ${names(route.hooks.query)}`]
      : []),
    ...(body === null ? [] : [`- body: ${membersOf(jsonSchema(body, "input"))}`]),
    ...Object.entries(route.output).map(
      ([type, schema]) => `- returns ${type}${schema === null ? "" : `: ${membersOf(jsonSchema(schema, "output"))}`}`,
    ),
    ...(route.problems?.length ? [`- specific errors: ${names(route.problems)}`] : []),
    ...(isPaid(route) ? examples(route.example) : []),
  ].join("\n");
}

function terms(route: Listed): readonly string[] {
  const paid = paidListing(route);
  if (paid !== null)
    return [
      `- costs ${paid.price} atomic units of ${NETWORKS[paid.networks[0]].money}, network ${paid.networks.map((network) => `\`${network}\``).join(" or ")}, scheme ${paid.schemes.map((scheme) => `\`${scheme}\``).join(" or ")}`,
    ];
  if (isPayable(route)) return ["- returns a 402 with the terms of this call"];
  return networksOfSignIn(route).length > 0 ? [SIGNING_IN] : [];
}

const SIGNING_IN = `- free, but first returns a 402 with a challenge (x402's extension \`${SIGN_IN}\`): sign its text (EIP-4361) with the wallet that paid, and repeat the request with the header \`${SIGN_IN_HEADER}\`; each challenge works once`;

const examples = ({ input, output }: { readonly input: unknown; readonly output: unknown }): readonly string[] => [
  `- example body: \`${JSON.stringify(input)}\``,
  `- example response (excerpt): \`${JSON.stringify(output)}\``,
];

const names = (list: readonly string[]): string => list.map((name) => `\`${name}\``).join(", ");

/** Lists an object's members, including its variants. Optional members end with a question mark. */
function membersOf(schema: JsonSchema): string {
  return variantsOf(schema)
    .map(({ type, items, properties = {}, required = [], $defs }) => {
      if (type === "array") return `a list of ${membersOf({ ...(items as JsonSchema), $defs })}`;
      const members = Object.keys(properties as object);
      const needed = required as readonly string[];
      return members.length === 0
        ? "anything; it is ignored"
        : names(members.map((name) => (needed.includes(name) ? name : `${name}?`)));
    })
    .join(" or ");
}

function byTag(routes: readonly Listed[]): readonly (readonly [Tag, readonly Listed[]])[] {
  const tags = [...new Set(routes.map(({ tag }) => tag))];
  // Routes about the service itself come last.
  tags.sort((one, other) => Number(one === "Discovery") - Number(other === "Discovery"));
  return tags.map((tag) => [tag, routes.filter((route) => route.tag === tag)]);
}
