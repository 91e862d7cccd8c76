/** Deeper than any request needs; the journal's database gives up at a few thousand levels. */
const MAX_DEPTH = 64;

/** Whether the journal can store a JSON value unchanged: PostgreSQL's jsonb rejects U+0000 and lone surrogates. */
export function isStorable(value: unknown, depth = 0): boolean {
  if (typeof value === "string") return isText(value);
  if (typeof value !== "object" || value === null) return true;
  return (
    depth < MAX_DEPTH && Object.entries(value).every(([name, inner]) => isText(name) && isStorable(inner, depth + 1))
  );
}

const isText = (text: string): boolean => text.isWellFormed() && !text.includes("\u0000");
