/** Deeper than any request needs to be; the journal's database gives up at a few thousand levels. */
const MAX_DEPTH = 64;

/** Whether the journal can keep a JSON value as it came: PostgreSQL's jsonb takes neither U+0000 nor half a surrogate pair. */
export function isKeepable(value: unknown, depth = 0): boolean {
  if (typeof value === "string") return isText(value);
  if (typeof value !== "object" || value === null) return true;
  return (
    depth < MAX_DEPTH && Object.entries(value).every(([name, inner]) => isText(name) && isKeepable(inner, depth + 1))
  );
}

const isText = (text: string): boolean => text.isWellFormed() && !text.includes("\u0000");
