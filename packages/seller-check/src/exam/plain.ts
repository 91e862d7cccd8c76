/** Control characters, and characters that are invisible or change the text direction. */
const UNSEEN = /\p{Cc}|\p{Cf}|\p{Cs}|\p{Zl}|\p{Zp}|\u034f|\u115f|\u1160|\u17b4|\u17b5|\u3164|\uffa0/gu;

const escaped = (character: string): string => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;

/**
 * Returns untrusted text made safe for a terminal, a log, or a page: one line of limited length, without control or
 * invisible characters. `##[` and `::`, which begin commands of CI systems, are neutralized.
 */
export function plain(text: string, most = 1_000): string {
  const cut = text.length <= most ? text : `${text.slice(0, most)}…`;
  return cut
    .replace(UNSEEN, escaped)
    .replaceAll("##[", "# #[")
    .replace(/^\s*::/, ": :");
}

/** Returns JSON text of the same value with every such character escaped. */
export const plainJson = (json: string): string =>
  json.replace(UNSEEN, (character) =>
    character === "\n"
      ? character
      : character
          .split("")
          .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
          .join(""),
  );
