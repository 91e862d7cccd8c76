import { expect, test } from "vitest";
import { forFile } from "../../support/for-file.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { send } from "../../support/payments/requests.ts";
import { startScene } from "./scene.ts";

// Servers differ on a repeated parameter: some use the first value, others the last. So the service rejects it, as it
// does nonsense.

interface Described {
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly description?: string }[];
}

/** The description of a body member in the query. It is compared with the body once a payment arrives. */
const OF_A_BODY = "May be sent here instead of in the body.";

const { service } = await forFile(startScene());
const { paths } = JSON.parse((await send(`${service.url}/openapi.json`)).text) as {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>;
};
const declared = Object.entries(paths).flatMap(([path, methods]) =>
  Object.entries(methods).flatMap(([method, { parameters = [] }]) =>
    parameters.flatMap(({ name, in: place, description }) =>
      place === "query" && description !== OF_A_BODY
        ? [{ method: method.toUpperCase(), path: path.replaceAll(/\{\w+\}/g, "1"), name }]
        : [],
    ),
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
      const answer = await send(`${service.url}${path}?${query}`, { method });
      expectProblem(answer, 400, "malformed_request");
      expect(answer.body.detail).toBe(`The query parameter ${name} appears more than once; give it once.`);
    }
  },
);

test("A parameter that a route does not declare may be repeated", async () => {
  for (const path of ["/stats", "/board", "/test/basic"]) {
    const method = path === "/test/basic" ? "POST" : "GET";
    const answer = await send(`${service.url}${path}?utm=1&utm=2`, { method });
    expect(answer.status).toBe(method === "POST" ? 402 : 200);
  }
});

/** A log search accepts any text, and a URL that cannot be examined gets a response with the reason. */
const ANSWERED = ["/log id", "/test/seller url"];

test.each(declared.filter(({ path, name }) => !ANSWERED.includes(`${path} ${name}`)))(
  "$method $path rejects a nonsense value of $name",
  async ({ method, path, name }) => {
    for (const value of ["AAA", "", "%00", "1e0", "get"]) {
      const answer = await send(`${service.url}${path}?${name}=${value}`, { method });
      expect([400, 404], `${name}=${value}: ${answer.text}`).toContain(answer.status);
    }
  },
);
