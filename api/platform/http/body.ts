import type { Context } from "hono";
import type { z } from "zod";
import { Problem } from "./errors.ts";

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
  // Node reads no more than the declared length. A stream would cost a whole Request of the Fetch API.
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

/** Reads a body of JSON. @param expected what it should be, in a sentence @throws Problem if it is anything else */
export async function readJson<T>(c: Context, schema: z.ZodType<T>, expected: string): Promise<T> {
  const body = schema.safeParse(parseJson(await readBody(c)));
  if (body.success) return body.data;
  throw new Problem("malformed_request", { detail: expected });
}

/** What the bytes say in JSON; undefined, which JSON cannot say, if they are none in UTF-8. */
export function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    return undefined;
  }
}
