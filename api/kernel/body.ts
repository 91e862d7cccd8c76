import type { Context } from "hono";
import { Problem } from "./errors.ts";

/** The largest request body. */
export const MAX_BODY_BYTES = 64 * 1024;

const tooLarge = () => new Problem("body_too_large", { detail: `The body may have at most ${MAX_BODY_BYTES} bytes.` });

/** Refuses a body by its declared length, before anything is read. */
export function refuseDeclaredLength(c: Context): void {
  if (Number(c.req.header("content-length") ?? 0) > MAX_BODY_BYTES) throw tooLarge();
}

/** The bytes of the body; a body without a declared length is cut off as soon as it is too large. */
export async function readBody(c: Context): Promise<Uint8Array> {
  refuseDeclaredLength(c);
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of c.req.raw.body ?? []) {
    length += chunk.length;
    if (length > MAX_BODY_BYTES) throw tooLarge();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
