import { expect, test } from "vitest";
import { forFile } from "../../support/for-file.ts";
import { expectProblem } from "../../support/payments/expectations.ts";
import { send } from "../../support/payments/requests.ts";
import { startScene } from "./scene.ts";

// One reader of a query takes the first of two values, another one the last; and nobody knows what nonsense asks for.

interface Described {
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly description?: string }[];
}

/** Of a body's member, which is compared with the body once a payment comes with it. */
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

test("query parameters are declared by many routes", () => {
  expect(new Set(declared.map(({ path }) => path)).size).toBeGreaterThan(8);
  expect(declared).toContainEqual({ method: "GET", path: "/purchases", name: "network" });
});

test.each(declared)(
  "$method $path refuses two values of $name, and two of the same",
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

test("a parameter that a route does not declare may be there any number of times", async () => {
  for (const path of ["/stats", "/board", "/test/basic"]) {
    const method = path === "/test/basic" ? "POST" : "GET";
    const answer = await send(`${service.url}${path}?utm=1&utm=2`, { method });
    expect(answer.status).toBe(method === "POST" ? 402 : 200);
  }
});

/** A search takes any text, and a URL that cannot be examined is answered with the reason. */
const ANSWERED = ["/log id", "/test/seller url"];

test.each(declared.filter(({ path, name }) => !ANSWERED.includes(`${path} ${name}`)))(
  "$method $path refuses a nonsense value of $name",
  async ({ method, path, name }) => {
    for (const value of ["AAA", "", "%00", "1e0", "get"]) {
      const answer = await send(`${service.url}${path}?${name}=${value}`, { method });
      expect([400, 404], `${name}=${value}: ${answer.text}`).toContain(answer.status);
    }
  },
);
