import { isIP, type LookupFunction, Socket } from "node:net";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Failed } from "../../../api/platform/web/guarded-fetch/dial.ts";
import type { Visitor } from "../../../api/sellers/visitor-web.ts";
import { createVisitor } from "../../../api/sellers/visitor-web.ts";
import { HOSTILE_URLS, LEADS_INSIDE } from "../../support/arbiter/urls.ts";

const PUBLIC = "93.184.216.34";
const names: Record<string, readonly (readonly string[])[]> = {};

/** Each lookup of a name returns the next answer, and the last one repeats. */
const resolve = async (name: string): Promise<readonly string[]> => {
  const answers = names[name];
  if (answers === undefined) return name === "trust.example" ? [OWN] : (LEADS_INSIDE[name] ?? [PUBLIC]);
  if (answers.length > 1) names[name] = answers.slice(1);
  return answers[0] ?? [];
};
const OWN = "93.184.216.99";
const visitor = createVisitor({
  ownHost: "trust.example",
  allowedOrigins: [],
  interfaces: () => ["93.184.216.77", "2606:4700::77"],
  userAgent: "exam",
  resolve,
});
const dialed: unknown[] = [];

interface Dial {
  readonly host: string;
  readonly lookup: LookupFunction;
}

// No real connection is made. Each one ends once its addresses are known.
beforeEach(() => {
  dialed.length = 0;
  vi.spyOn(Socket.prototype, "connect").mockImplementation(function (this: Socket, ...args: unknown[]) {
    const [{ host, lookup }] = args.flat() as [Dial];
    const end = (error: Error | null, found: unknown) => {
      if (error === null) dialed.push(found);
      process.nextTick(() => this.destroy(error ?? new Error("dialed")));
    };
    if (isIP(host) > 0) end(null, host);
    else lookup(host, { all: true }, end);
    return this;
  });
});
afterEach(() => vi.restoreAllMocks());

const transport = () => visitor.visit(5_000, new AbortController().signal);
const request = (url: string) => ({ method: "GET", url, headers: {}, body: null });

test("A public seller is dialed, which shows that the next test can fail", async () => {
  await expect(transport().send(request("http://public.example/"))).rejects.toThrow("dialed");
  expect(dialed).toHaveLength(1);
});

test.each(HOSTILE_URLS.filter((url) => URL.canParse(url)))(
  "%s is never dialed, not even for a request that hangs up",
  async (url) => {
    await expect(transport().send(request(url))).rejects.not.toThrow("dialed");
    await expect(transport().sendAndHangUp(request(url))).rejects.not.toThrow("dialed");
    expect(dialed).toEqual([]);
  },
);

test("A name that later resolves to a private address is no longer dialed", async () => {
  names["rebound.example"] = [[PUBLIC], ["127.0.0.1"]];
  await expect(transport().send(request("http://rebound.example/"))).rejects.toThrow("dialed");
  await expect(transport().send(request("http://rebound.example/"))).rejects.not.toThrow("dialed");
  expect(dialed).toHaveLength(1);
});

test("A name that resolves to a public and a private address is not dialed", async () => {
  names["both.example"] = [[PUBLIC, "10.0.0.1"]];
  await expect(transport().send(request("http://both.example/"))).rejects.not.toThrow("dialed");
  expect(dialed).toEqual([]);
});

test("After a failed lookup, the resolver is checked with a random name below our host, but not for a local host", async () => {
  const asked: string[] = [];
  const resolving = (ownHost: string, answer: () => Promise<readonly string[]>) => {
    const settings = { ownHost, allowedOrigins: [], interfaces: () => [], userAgent: "exam" };
    return createVisitor({
      ...settings,
      resolve: (name) => {
        asked.push(name);
        return answer();
      },
    });
  };
  const failed = (visited: Visitor) =>
    visited
      .visit(5_000, new AbortController().signal)
      .send(request("https://seller.example/"))
      .catch((error: unknown) => error);
  const none = async () => [];
  const unclear = () => Promise.reject(new Error("ESERVFAIL"));
  const found: boolean[] = [];
  for (const answer of [none, unclear]) {
    const visited = resolving("trust.example", answer);
    const failure = await failed(visited);
    asked.length = 0;
    found.push(await visited.resolves(failure), await visited.resolves(new Error("reset")));
    expect(asked).toEqual([expect.stringMatching(/^[0-9a-f]{16}\.trust\.example$/), "trust.example"]);
  }
  expect(found).toEqual([true, true, false, true]);
  asked.length = 0;
  for (const host of ["localhost", "trust.localhost", "127.0.0.1", "93.184.216.99", "[::1]"])
    expect(await resolving(host, unclear).resolves(new Failed("dns"))).toBe(true);
  expect(asked).toEqual([]);
});
