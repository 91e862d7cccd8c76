/** What is not seen, or changes how its neighbors are seen: controls, directions, joiners, fillers, half characters. */
const UNSEEN = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;
const UNSEEN_IN_LINES = /(?![\n\t])[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;
/** Marks that pile up on one letter reach over the lines around it. */
const PILE = /(\p{M}{2})\p{M}+/gu;

const written = (character: string): string => `\\u{${character.codePointAt(0)?.toString(16)}}`;

/** A stranger's words as one line of at most about `most` characters: what is not seen is written out. */
export const foreignLine = (text: string, most: number): string =>
  cut(text.slice(0, most).replace(PILE, "$1").replace(UNSEEN, written), { of: text, most });

/** The same over several lines. */
export const foreignLines = (text: string, most: number): string =>
  cut(text.slice(0, most).replaceAll("\r\n", "\n").replace(PILE, "$1").replace(UNSEEN_IN_LINES, written), {
    of: text,
    most,
  });

/** Written-out characters are longer than they were, so the result is cut as well. */
function cut(shown: string, { of, most }: { readonly of: string; readonly most: number }): string {
  const end = [...shown.slice(0, most)].join("");
  return of.length > most || shown.length > most ? `${end.toWellFormed()}…` : shown;
}
