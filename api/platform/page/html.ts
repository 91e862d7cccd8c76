import { raw, html as template } from "hono/html";

/** Text that is safe to insert into a page unescaped. */
export type Markup = ReturnType<typeof raw>;
export type Child = Markup | string | number | bigint | false | null | undefined | readonly Child[];

/**
 * Renders a template whose values are escaped unless they are `Markup`. It is synchronous, because no value is a
 * promise.
 */
export function html(strings: TemplateStringsArray, ...values: readonly Child[]): Markup {
  const rendered = template(strings, ...values);
  if (rendered instanceof Promise) throw new TypeError("html: a value is a promise; render it first");
  return rendered;
}

/** Renders a JSON-LD block. `<` is escaped as JSON, so no text in it can close the script element. */
export const jsonLd = (document: Readonly<Record<string, unknown>>): Markup =>
  raw(`<script type="application/ld+json">${JSON.stringify(document).replaceAll("<", "\\u003c")}</script>`);

const WORDS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];

/** Writes a whole number for use in a sentence, spelled out up to twelve. */
export const inWords = (number: number): string => WORDS[number] ?? String(number);

/** Formats a date like 2026-12-21, in UTC. */
export const day = (date: Date): string => date.toISOString().slice(0, 10);

const LONG = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "long", year: "numeric", timeZone: "UTC" });

/** Formats a date like 21 December 2026, in UTC. */
export const longDay = (date: Date): string => LONG.format(date);

/** Formats a count like 1 entry or 1,000 entries. @param one the singular; its plural has an s, unless it is given */
export const counted = (count: number, one: string, many = `${one}s`): string =>
  `${count.toLocaleString("en-US")} ${count === 1 ? one : many}`;

/** Renders a `<time>` element like 21 December 2026, 09:30 UTC. */
export const instant = (date: Date): Markup =>
  html`<time datetime="${date.toISOString()}">${longDay(date)}, ${date.toISOString().slice(11, 16)} UTC</time>`;

/**
 * Characters that are invisible or change the look of their neighbors: controls, directions, joiners, fillers, half
 * characters.
 */
const UNSEEN = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;
const UNSEEN_IN_LINES = /(?![\n\t])[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;
/** Piled-up marks on one letter, which would cover the lines around it. */
const PILE = /(\p{M}{2})\p{M}+/gu;

const written = (character: string): string => `\\u{${character.codePointAt(0)?.toString(16)}}`;

/** Renders a stranger's text as one line of at most about `most` characters. Invisible characters are written out. */
export const foreignLine = (text: string, most: number): string =>
  cut(text.slice(0, most).replace(PILE, "$1").replace(UNSEEN, written), { of: text, most });

/** The same over several lines. */
export const foreignLines = (text: string, most: number): string =>
  cut(text.slice(0, most).replaceAll("\r\n", "\n").replace(PILE, "$1").replace(UNSEEN_IN_LINES, written), {
    of: text,
    most,
  });

/** Written-out characters are longer than the originals, so the result is cut as well. */
function cut(shown: string, { of, most }: { readonly of: string; readonly most: number }): string {
  const end = [...shown.slice(0, most)].join("");
  return of.length > most || shown.length > most ? `${end.toWellFormed()}…` : shown;
}
