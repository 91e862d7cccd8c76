import type { Position, Walk } from "./board.ts";

const FORM = /^(\d{1,14})\.([0-9a-f]{16,32})\.(\d{1,14})\.([0-9a-f]{16,32})\.(\w+)$/;

/** The opaque cursor of a walk; `filter` is what the walk is restricted to. */
export function encodeCursor({ top, after }: Walk, filter: string): string {
  const place = ({ id, issuedAt }: Position) => `${issuedAt.getTime()}.${id}`;
  return Buffer.from(`${place(top)}.${place(after)}.${filter}`).toString("base64url");
}

/** The walk a cursor names; null if this service never issued such a cursor for this filter. */
export function parseCursor(text: string, filter: string): Walk | null {
  const [, topAt, topId = "", afterAt, afterId = "", own] =
    FORM.exec(Buffer.from(text, "base64url").toString("latin1")) ?? [];
  const walk = {
    top: { issuedAt: new Date(Number(topAt)), id: topId },
    after: { issuedAt: new Date(Number(afterAt)), id: afterId },
  };
  return own === filter && encodeCursor(walk, filter) === text ? walk : null;
}
