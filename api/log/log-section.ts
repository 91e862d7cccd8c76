import type { EntryType } from "../../packages/verifier/src/tlog/entry-types.ts";
import { html, type Markup } from "../platform/page/html.ts";
import { facts } from "../platform/page/page.ts";
import type { LogCheckpoints } from "./checkpoints-store.ts";
import { ENTRY_MEANINGS } from "./log-overview.ts";
import { entryPath, LOG_PATH, proofPath } from "./log-paths.ts";
import type { LoggedEntry, LogStore } from "./store.ts";

const PAIR = new Intl.ListFormat("en-US", { type: "conjunction" });

const witnessedBy = ({ witnesses }: LogPlace): string =>
  witnesses.length === 0 ? "not yet cosigned by a witness" : `witnessed by ${PAIR.format(witnesses)}`;

/** Renders "In the log at index N, witnessed by …" for a record's page. */
export const logSection = (
  places: readonly LogPlace[],
): Markup => html`<section aria-labelledby="log"><h2 id="log">Transparency log</h2>
${
  places.length === 0
    ? html`<p class="measure">Not in <a href="${LOG_PATH}">the log</a> yet. A record is logged within seconds.</p>`
    : html`<p class="measure">An entry in the <a href="${LOG_PATH}">append-only log</a>, which is the same for everyone. You can check the proof offline.</p>
${facts(
  places.map((place) => [
    ENTRY_MEANINGS[place.type],
    html`In the log at index <a href="${entryPath(place)}">${place.index.toLocaleString("en-US")}</a>, ${witnessedBy(place)}. <a href="${proofPath(place)}">Proof</a>`,
  ]),
  "ruled",
)}`
}</section>`;

/** An entry, and the witnesses that cosigned a tree with it. */
export interface LogPlace extends LoggedEntry {
  /** The names of the witnesses' keys. */
  readonly witnesses: readonly string[];
}

export type LogPlaces = ReturnType<typeof createLogPlaces>;

export function createLogPlaces(
  store: Pick<LogStore, "findAll" | "at">,
  checkpoints: Pick<LogCheckpoints, "witnesses">,
) {
  const placed = async (entry: LoggedEntry): Promise<LogPlace> => {
    const witnesses = await checkpoints.witnesses(entry.generation);
    const saw = witnesses.filter(({ size }) => size !== null && size > entry.index);
    return { ...entry, witnesses: saw.map(({ name }) => name) };
  };
  return {
    /** Returns the entries of a record, oldest first. The list is empty until the first one is integrated. */
    of: async (ref: string, types: readonly EntryType[]): Promise<readonly LogPlace[]> =>
      Promise.all((await store.findAll(ref, types)).map(placed)),
    async at(generation: number, index: number): Promise<LogPlace | null> {
      const entry = await store.at(generation, index);
      return entry === null ? null : placed(entry);
    },
  };
}
