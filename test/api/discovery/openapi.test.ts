import { checkEndpointSchema, discoverOriginSchema, getOpenAPI, getWarningsForOpenAPI } from "@agentcash/discovery";
import SwaggerParser from "@apidevtools/swagger-parser";
import { Validator } from "@seriousme/openapi-schema-validator";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, test } from "vitest";
import { forFile } from "../../support/for-file.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { PRICES } from "../../support/payments/prices.ts";
import { challengeOf, post, send } from "../../support/payments/requests.ts";
import { mountedRoutes, SPECIFIED, startScene } from "./scene.ts";

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly security: readonly unknown[];
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly description?: string }[];
  readonly requestBody?: {
    readonly required: boolean;
    readonly content: { readonly "application/json": { readonly schema: object; readonly example?: unknown } };
  };
  readonly responses: Readonly<Record<string, unknown>>;
  readonly "x-payment-info"?: { readonly price: { readonly mode: string; readonly amount: string } };
}

interface OpenApiDocument {
  readonly openapi: string;
  readonly servers: readonly { readonly url: string }[];
  readonly info: { readonly version: string; readonly contact: object };
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

const scene = await forFile(startScene());
const text = (await send(`${scene.service.url}/openapi.json`)).text;

const parsed = (): OpenApiDocument => JSON.parse(text) as OpenApiDocument;
const operations = () =>
  Object.entries(parsed().paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      name: `${method.toUpperCase()} ${path}`,
      path,
      operation,
    })),
  );
const usd = (atomic: string) => (Number(atomic) / 1e6).toFixed(2);

/** Lists every object in a document. */
const nodes = (value: unknown): readonly Record<string, unknown>[] =>
  typeof value !== "object" || value === null
    ? []
    : [...(Array.isArray(value) ? [] : [value as Record<string, unknown>]), ...Object.values(value).flatMap(nodes)];

const references = (value: unknown): readonly string[] =>
  nodes(value).flatMap(({ $ref }) => (typeof $ref === "string" ? [$ref] : []));

/** Returns whether each of the two validators accepts the document as OpenAPI 3.1. */
async function verdicts(document: object): Promise<readonly boolean[]> {
  const one = await new Validator().validate(structuredClone(document) as Parameters<Validator["validate"]>[0]);
  const other = await SwaggerParser.validate(structuredClone(document) as never).then(
    () => true,
    () => false,
  );
  return [one.valid, other];
}

describe("OpenAPI description", () => {
  test("Two validators accept the description, and both detect faults", async () => {
    expect(await verdicts(parsed())).toEqual([true, true]);
    const { info: _, ...headless } = parsed();
    expect(await verdicts(headless)).toEqual([false, false]);
    const unanswered = structuredClone(parsed()) as { paths: Record<string, Record<string, { responses: unknown }>> };
    unanswered.paths["/health"] = { get: { responses: { 200: {} } } };
    expect(await verdicts(unanswered)).toEqual([false, false]);
  });

  test("The description has no JavaScript-only pattern, no list without items, and no unused component", () => {
    const document = parsed() as unknown as Record<string, unknown> & { components: Record<string, object> };
    const parts = nodes(document);
    const patterns = parts.flatMap(({ pattern }) => (typeof pattern === "string" ? [pattern] : []));
    expect(patterns.length).toBeGreaterThan(5);
    expect(patterns.filter((pattern) => /\\[pPu]\{|\(\?<|\/[a-z]+$/.test(pattern))).toEqual([]);
    expect(parts.filter(({ type, items }) => type === "array" && items === undefined)).toEqual([]);
    const { components, ...used } = document;
    const reached = new Set(references(used));
    for (const reference of reached) {
      const [, , kind = "", name = ""] = reference.split("/");
      const found = (components[kind] as Record<string, unknown>)[name];
      expect(found, reference).toBeDefined();
      for (const next of references(found)) reached.add(next);
    }
    const all = Object.entries(components).flatMap(([kind, named]) =>
      Object.keys(named).map((name) => `#/components/${kind}/${name}`),
    );
    expect(all.filter((one) => !reached.has(one))).toEqual([]);
  });

  test("The description covers exactly the mounted routes, including all of the specification's", () => {
    const described = operations().map(({ name }) => name);
    expect(described.toSorted()).toEqual([...new Set(mountedRoutes(scene.service))].sort());
    expect(SPECIFIED.filter((route) => !described.includes(route))).toEqual([]);
  });

  test("Every operation has a summary, a unique ID, no security, and its path parameters", () => {
    const all = operations();
    expect(new Set(all.map(({ operation }) => operation.operationId)).size).toBe(all.length);
    for (const { name, path, operation } of all) {
      expect(operation.summary, name).toMatch(/\w/);
      expect(operation.security, name).toEqual([]);
      const inPath = (operation.parameters ?? []).filter((parameter) => parameter.in === "path");
      expect(
        inPath.map((parameter) => parameter.name),
        name,
      ).toEqual([...path.matchAll(/\{(\w+)\}/g)].map(([, one]) => one));
    }
  });

  test("Exactly the routes with a fixed price have that price, a 402, and an optional body", async () => {
    for (const { name, path, operation } of operations().filter((one) => one.name.startsWith("POST "))) {
      const answer = await post(scene.service.url + path);
      const [terms] = answer.status === 402 ? challengeOf(answer).accepts : [];
      const { price } = operation["x-payment-info"] ?? {};
      expect(price, name).toEqual(terms && { mode: "fixed", currency: "USD", amount: usd(terms.amount) });
      if (terms === undefined) continue;
      expect(operation.responses, name).toHaveProperty("402");
      expect(operation.requestBody, name).toMatchObject({ required: false });
    }
  });

  test("Every example matches its schema", () => {
    const ajv = new Ajv2020({ strict: false });
    const examples = operations().flatMap(({ name, operation }) => {
      const { schema = {}, example } = operation.requestBody?.content["application/json"] ?? {};
      return example === undefined ? [] : [{ name, valid: ajv.validate(schema, example), errors: ajv.errors }];
    });
    expect(examples.length).toBeGreaterThan(10);
    expect(examples.filter(({ valid }) => !valid)).toEqual([]);
  });

  test.each([
    ["/score", { wallet: `0x${"Ab".repeat(20)}` }, true],
    ["/score", {}, false],
    [
      "/arbiter/verify",
      { category: "payload-hash", conditions: { payload_text: "", expected_sha256: "AB".repeat(32) } },
      true,
    ],
    ["/arbiter/verify", { category: "payload-hash", conditions: { payload_text: "" } }, false],
    [
      "/arbiter/verify",
      { category: "ci-status", conditions: { repo: "Owner/Name", commit_sha: "AB".repeat(20) } },
      true,
    ],
    ["/arbiter/verify", { category: "taste", conditions: {} }, false],
    ["/escrow/verify", { payment_id: `0x${"AB".repeat(32)}`, responseBody: "{}" }, true],
    ["/escrow/verify", { payment_id: 4 }, false],
  ])("The schema of the body of %s agrees with the service on %j: %s", (path, body, valid) => {
    const { schema = {} } = parsed().paths[path]?.post?.requestBody?.content["application/json"] ?? {};
    expect(new Ajv2020({ strict: false }).validate(schema, body)).toBe(valid);
  });

  test("The service's response matches the description for every route that needs no argument", async () => {
    const open = operations().filter(({ name, path }) => name.startsWith("GET ") && !path.includes("{"));
    expect(open.length).toBeGreaterThan(20);
    for (const { path } of open) {
      for (const accept of ["application/json", "text/html"]) {
        const { status } = await send(scene.service.url + path, { headers: { accept } });
        expect({ path, status }).toEqual({
          path,
          status: ["/verify", "/receipt"].includes(path) ? 400 : expect.any(Number),
        });
      }
    }
  });
});

describe("AgentCash's discovery", () => {
  test("Discovery finds every paid route with its price and reports no warning", async () => {
    const found = await discoverOriginSchema({ target: scene.service.url });
    const endpoints = "endpoints" in found ? found.endpoints : [];
    const paid = endpoints.filter(({ authMode }) => authMode === "paid");
    const expected = operations().flatMap(({ name, operation }) => {
      const { price } = operation["x-payment-info"] ?? {};
      return price === undefined ? [] : [`${name} ${price.amount} USD`];
    });
    expect(expected.length).toBeGreaterThan(10);
    expect(paid.map(({ method, path, price }) => `${method} ${path} ${price}`).toSorted()).toEqual(expected.toSorted());
    const document = await getOpenAPI(scene.service.url);
    expect(getWarningsForOpenAPI(document.isOk() ? document.value : null)).toEqual([]);
  });

  test("A probe reads the terms of a route", async () => {
    const checked = await checkEndpointSchema({ url: `${scene.service.url}/score`, probe: true });
    const advisories = checked.found ? checked.advisories : [];
    expect(advisories.find(({ method }) => method === "POST")).toMatchObject({
      authMode: "paid",
      paymentOptions: [{ protocol: "x402", network: "eip155:8453", amount: String(PRICES.espresso) }],
    });
  });
});

// Servers differ on a repeated parameter: some use the first value, others the last. So the service rejects it, as it
// does nonsense.

/** The description of a body member in the query. It is compared with the body once a payment arrives. */
const OF_A_BODY = "May be sent here instead of in the body.";

const declared = operations().flatMap(({ name: route, path, operation: { parameters = [] } }) =>
  parameters.flatMap(({ name, in: place, description }) =>
    place === "query" && description !== OF_A_BODY
      ? [{ method: String(route.split(" ")[0]), path: path.replaceAll(/\{\w+\}/g, "1"), name }]
      : [],
  ),
);

test("Many routes declare query parameters", () => {
  expect(new Set(declared.map(({ path }) => path)).size).toBeGreaterThan(8);
  expect(declared).toContainEqual({ method: "GET", path: "/purchases", name: "network" });
});

test.each(declared)(
  "$method $path rejects a repeated $name, even with equal values",
  async ({ method, path, name }) => {
    const encoded = `%${name.charCodeAt(0).toString(16)}${name.slice(1)}`;
    for (const query of [
      `${name}=1&${name}=2`,
      `${name}=1&${name}=1`,
      `${name}&x=1&${name}`,
      `${encoded}=1&${name}=2`,
    ]) {
      const answer = await send(`${scene.service.url}${path}?${query}`, { method });
      expectProblem(answer, 400, "malformed_request");
      expect(answer.body.detail).toBe(`The query parameter ${name} appears more than once; give it once.`);
    }
  },
);

test("A parameter that a route does not declare may be repeated", async () => {
  for (const path of ["/stats", "/board", "/test/basic"]) {
    const method = path === "/test/basic" ? "POST" : "GET";
    const answer = await send(`${scene.service.url}${path}?utm=1&utm=2`, { method });
    expect(answer.status).toBe(method === "POST" ? 402 : 200);
  }
});

/** A log search accepts any text, and a URL that cannot be examined gets a response with the reason. */
const ANSWERED = ["/log id", "/test/seller url"];

test.each(declared.filter(({ path, name }) => !ANSWERED.includes(`${path} ${name}`)))(
  "$method $path rejects a nonsense value of $name",
  async ({ method, path, name }) => {
    for (const value of ["AAA", "", "%00", "1e0", "get"]) {
      const answer = await send(`${scene.service.url}${path}?${name}=${value}`, { method });
      expect([400, 404], `${name}=${value}: ${answer.text}`).toContain(answer.status);
    }
  },
);
