/**
 * The id of a signing key's next entry: its thumbprint, and `#2`, `#3` … when it returns after another key has signed. Null
 * if it is the key that was announced last.
 * @param said the ids of all keys that were announced, oldest first
 */
export function nextKeyId(thumbprint: string, said: readonly string[]): string | null {
  const keys = said.map((id) => id.replace(/#\d+$/, ""));
  if (keys.at(-1) === thumbprint) return null;
  const times = keys.filter((key) => key === thumbprint).length;
  return times === 0 ? thumbprint : `${thumbprint}#${times + 1}`;
}
