import { html, type Markup } from "../platform/page/html.ts";
import { facts } from "../platform/page/page.ts";
import { ENTRY_MEANINGS } from "./log-overview.ts";
import { entryPath, LOG_PATH, proofPath } from "./log-paths.ts";
import type { LogPlace } from "./log-place.ts";

const PAIR = new Intl.ListFormat("en-US", { type: "conjunction" });

/** Who has cosigned a tree with the entry. */
const witnessedBy = ({ witnesses }: LogPlace): string =>
  witnesses.length === 0 ? "not yet cosigned by a witness" : `witnessed by ${PAIR.format(witnesses)}`;

/** "In the log at index N, witnessed by …", for the page of a record. */
export const logSection = (
  places: readonly LogPlace[],
): Markup => html`<section aria-labelledby="log"><h2 id="log">Transparency log</h2>
${
  places.length === 0
    ? html`<p class="measure">Not in <a href="${LOG_PATH}">the log</a> yet: a record gets its place within seconds.</p>`
    : html`<p class="measure">An entry of the <a href="${LOG_PATH}">append-only log</a> that everyone sees alike. The proof is checked offline.</p>
${facts(
  places.map((place) => [
    ENTRY_MEANINGS[place.type],
    html`In the log at index <a href="${entryPath(place)}">${place.index.toLocaleString("en-US")}</a>, ${witnessedBy(place)}. <a href="${proofPath(place)}">Proof</a>`,
  ]),
  "ruled",
)}`
}</section>`;
