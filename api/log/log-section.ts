import type { EntryType } from "../../packages/verifier/src/tlog/entry-types.ts";
import { html, type Markup } from "../platform/page/html.ts";
import { facts } from "../platform/page/page.ts";
import { ENTRY_MEANINGS } from "./log-overview.ts";
import { entryPath, LOG_PATH, proofPath } from "./log-paths.ts";
import type { LogCheckpoints } from "./served-checkpoint.ts";
import type { LoggedEntry, LogStore } from "./store.ts";

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

/** An entry, and who has signed a tree that contains it. */
export interface LogPlace extends LoggedEntry {
  /** The names of the witnesses' keys. */
  readonly witnesses: readonly string[];
}

/** Finds records in the log. */
export interface LogPlaces {
  /** The entries of a record, oldest first; empty until its first one is integrated. */
  of(ref: string, types: readonly EntryType[]): Promise<readonly LogPlace[]>;
  at(generation: number, index: number): Promise<LogPlace | null>;
}

export function createLogPlaces(
  store: Pick<LogStore, "findAll" | "at">,
  checkpoints: Pick<LogCheckpoints, "witnesses">,
): LogPlaces {
  const placed = async (entry: LoggedEntry): Promise<LogPlace> => {
    const witnesses = await checkpoints.witnesses(entry.generation);
    const saw = witnesses.filter(({ size }) => size !== null && size > entry.index);
    return { ...entry, witnesses: saw.map(({ name }) => name) };
  };
  return {
    of: async (ref, types) => Promise.all((await store.findAll(ref, types)).map(placed)),
    async at(generation, index) {
      const entry = await store.at(generation, index);
      return entry === null ? null : placed(entry);
    },
  };
}
