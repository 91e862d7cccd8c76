/** Whether an `If-None-Match` names the tag; weak tags compare too (RFC 9110, section 13.1.2). */
export const isHeld = (condition: string | undefined, etag: string): boolean =>
  (condition ?? "").split(",").some((tag) => ["*", etag].includes(tag.trim().replace(/^W\//, "")));
