/** Control characters, and those that are not seen or turn the direction of what follows. */
const UNSEEN = /\p{Cc}|\p{Cf}|\p{Cs}|\p{Zl}|\p{Zp}|\u034f|\u115f|\u1160|\u17b4|\u17b5|\u3164|\uffa0/gu;

const escaped = (character: string): string => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;

/**
 * A stranger's words for a terminal, a log or a page: one line, without characters that command a terminal or hide, and
 * not much of it. `##[` and `::` begin commands of continuous integration.
 */
export function plain(text: string, most = 1_000): string {
  const cut = text.length <= most ? text : `${text.slice(0, most)}…`;
  return cut
    .replace(UNSEEN, escaped)
    .replaceAll("##[", "# #[")
    .replace(/^\s*::/, ": :");
}

/** JSON text of the same value in which every such character is an escape. */
export const plainJson = (json: string): string =>
  json.replace(UNSEEN, (character) =>
    character === "\n"
      ? character
      : character
          .split("")
          .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
          .join(""),
  );
