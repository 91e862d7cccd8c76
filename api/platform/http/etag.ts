import { createHash } from "node:crypto";

/** A strong tag: 128 bits of the body's SHA-256, and the body's content coding if it has several. */
export const etagOf = (body: string | Uint8Array, coding = ""): string =>
  `"${createHash("sha256").update(body).digest("base64url").slice(0, 22)}${coding}"`;

/** Whether an `If-None-Match` header matches the tag, using weak comparison (RFC 9110, section 13.1.2). */
export const isHeld = (condition: string | undefined, etag: string): boolean =>
  (condition ?? "").split(",").some((tag) => ["*", etag].includes(tag.trim().replace(/^W\//, "")));
