/** Whether an `If-None-Match` header matches the tag, using weak comparison (RFC 9110, section 13.1.2). */
export const isHeld = (condition: string | undefined, etag: string): boolean =>
  (condition ?? "").split(",").some((tag) => ["*", etag].includes(tag.trim().replace(/^W\//, "")));
