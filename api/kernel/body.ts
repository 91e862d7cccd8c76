import type { Context } from "hono";
import { Problem } from "./errors.ts";

/** The largest request body, unless a route takes more. */
export const MAX_BODY_BYTES = 64 * 1024;

const tooLarge = (limit: number) =>
  new Problem("body_too_large", { detail: `The body may have at most ${limit} bytes.` });

/** Refuses a body by its declared length, before anything is read. */
export function refuseDeclaredLength(c: Context, limit = MAX_BODY_BYTES): void {
  if (Number(c.req.header("content-length") ?? 0) > limit) throw tooLarge(limit);
}

/** The bytes of the body; a body without a declared length is cut off as soon as it is too large. */
export async function readBody(c: Context, limit = MAX_BODY_BYTES): Promise<Uint8Array> {
  refuseDeclaredLength(c, limit);
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of c.req.raw.body ?? []) {
    length += chunk.length;
    if (length > limit) throw tooLarge(limit);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
