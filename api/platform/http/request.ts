import type { IncomingMessage } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { HttpBindings } from "@hono/node-server";
import type { Context } from "hono";
import { z } from "zod";
import { Problem } from "./errors.ts";
import type { Route } from "./route.ts";

/** The largest request body, unless the route allows more. */
export const MAX_BODY_BYTES = 64 * 1024;

const tooLarge = (limit: number) =>
  new Problem("body_too_large", { detail: `The body exceeds the limit of ${limit} bytes.` });

/** Rejects a body by its declared length, before reading any of it. */
export function refuseDeclaredLength(c: Context, limit = MAX_BODY_BYTES): void {
  if (Number(c.req.header("content-length") ?? 0) > limit) throw tooLarge(limit);
}

/** Reads the body. Without a declared length, stops as soon as it grows too large. */
export async function readBody(c: Context, limit = MAX_BODY_BYTES): Promise<Uint8Array> {
  refuseDeclaredLength(c, limit);
  // Node reads no more than the declared length. A stream would need a whole Request of the Fetch API.
  const declared = c.req.header("content-length");
  if (declared === "0") return new Uint8Array();
  if (declared !== undefined) return new Uint8Array(await c.req.arrayBuffer());
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of c.req.raw.body ?? []) {
    length += chunk.length;
    if (length > limit) throw tooLarge(limit);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Reads the body; null if it takes longer than this. */
export async function readBodyWithin(c: Context, ms: number): Promise<Uint8Array | null> {
  const timer = new AbortController();
  try {
    return await Promise.race([readBody(c), sleep(ms, null, { signal: timer.signal })]);
  } finally {
    timer.abort();
  }
}

/**
 * Reads a body of JSON.
 * @param expected a description of the expected body, as a sentence
 * @throws Problem if the body does not match
 */
export async function readJson<T>(c: Context, schema: z.ZodType<T>, expected: string): Promise<T> {
  const body = schema.safeParse(parseJson(await readBody(c)));
  if (body.success) return body.data;
  throw new Problem("malformed_request", { detail: expected });
}

/** Parses the bytes as JSON in UTF-8; undefined, which JSON cannot express, if they are not valid. */
export function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    return undefined;
  }
}

/**
 * Refuses a request that repeats one of its route's query parameters, or gives one of a fixed list a value outside of
 * the list. Parsers take a query's first value or its last one, so a proxy or a cache could read a different request.
 * Parameters that the route does not declare are ignored.
 */
export function checkQuery(url: string, { parameters = [] }: Pick<Route, "parameters">): void {
  const start = url.indexOf("?");
  if (start < 0) return;
  const query = new URLSearchParams(url.slice(start));
  for (const { name, in: place, schema } of parameters) {
    const [value, ...more] = place === "query" ? query.getAll(name) : [];
    if (more.length > 0) throw malformed(`The query parameter ${name} appears more than once; give it once.`);
    if (value !== undefined && schema instanceof z.ZodEnum && !schema.options.includes(value))
      throw malformed(`The query parameter ${name} must be one of ${EITHER.format(schema.options.map(String))}.`);
  }
}

const EITHER = new Intl.ListFormat("en-US", { type: "disjunction" });
const malformed = (detail: string) => new Problem("malformed_request", { detail });

/** Distinguishes clients. */
export interface Clients {
  /** Returns the key under which a client's requests are counted. */
  clientOf(incoming: IncomingMessage): string;
}

/**
 * The client on whose behalf a shared resource is used: its key, or null for paid requests and our own work, which come
 * first.
 */
export type Asker = string | null;

/** Returns the key of the client that sends a request. All clients with an unknown connection share one key. */
export function clientOf(c: Context, clients: Clients): string {
  const { incoming } = (c.env ?? {}) as Partial<HttpBindings>;
  return incoming ? clients.clientOf(incoming) : "unknown";
}

/**
 * Returns the network in which one owner has many addresses: the /24 of an IPv4 address, the /48 of an IPv6 network.
 * Any other key is its own network.
 */
export function networkOf(client: string): string {
  if (/^\d+(\.\d+){3}$/.test(client)) return `${client.slice(0, client.lastIndexOf("."))}.0/24`;
  const groups = /^([0-9a-f]+:[0-9a-f]+:[0-9a-f]+):[0-9a-f]+::\/64$/.exec(client);
  return groups === null ? client : `${groups[1]}::/48`;
}
