/**
 * Returns JSON in canonical form (RFC 8785): sorted members, no white space. Accepts any value that `JSON.parse`
 * returns.
 */
export function canonical(value: unknown): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  // RFC 8785 sorts by UTF-16 code units, as `<` does.
  const sorted = members.sort(([one], [other]) => (one < other ? -1 : 1));
  return `{${sorted.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`).join(",")}}`;
}
