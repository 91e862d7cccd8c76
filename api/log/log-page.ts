import { counted, html, instant, type Markup } from "../platform/page/html.ts";
import { codeBlock, facts, renderPage } from "../platform/page/page.ts";
import { ENTRY_MEANINGS, type entryDocument, type LogOverview } from "./log-overview.ts";
import { checkCommands, followCommands, LOG_PATH } from "./log-paths.ts";

type Listed = LogOverview["newest"][number];

export function renderLog(log: LogOverview, baseUrl: string): string {
  return renderPage({
    title: "Transparency log",
    description: WHAT,
    canonical: `${baseUrl}${LOG_PATH}`,
    jsonUrl: `${baseUrl}${LOG_PATH}?format=json`,
    current: LOG_PATH,
    main: html`<div class="hero"><p class="eyebrow">Transparency log</p>
<h1>Everyone sees the same record</h1>
<p class="lead">${WHAT}</p></div>
${headSection(log)}
${searchSection(log)}
${witnessSection(log)}
${verifySection(log, baseUrl)}
${newestSection(log)}`,
  });
}

const WHAT =
  "Every certificate, verdict, correction and escrow evaluation is an entry in one append-only log. Its root covers them all, so no entry can be changed or removed unnoticed.";

const count = (number: number): string => number.toLocaleString("en-US");

function headSection({ origin, checkpoint, checkpoint_url, witnesses, quorum }: LogOverview): Markup {
  const rows: Parameters<typeof facts>[0] =
    checkpoint === null
      ? [["Newest checkpoint", "none yet"]]
      : [
          ["Entries", html`<strong>${count(checkpoint.size)}</strong>`],
          ["Root", html`<code>${checkpoint.root_hash}</code>`],
          ["Newest checkpoint", instant(new Date(checkpoint.at))],
        ];
  return html`<section aria-labelledby="head"><h2 id="head">Now</h2>
${facts(
  [
    ["Origin", html`<code>${origin}</code>`],
    ...rows,
    ["Witnesses", witnesses.length === 0 ? "none configured" : `${witnesses.length}, of which ${quorum} must cosign`],
  ],
  "ruled",
)}
${
  checkpoint !== null &&
  html`${codeBlock({ id: "checkpoint", caption: "The checkpoint", text: checkpoint.note })}
<p class="measure soft small">The newest one is always at <a class="mono" href="${pathOf(checkpoint_url)}">${pathOf(checkpoint_url)}</a>.</p>`
}</section>`;
}

const pathOf = (url: string): string => url.slice(new URL(url).origin.length);

const searchSection = ({
  search,
}: LogOverview): Markup => html`<section aria-labelledby="find"><h2 id="find">Find a record</h2>
<form action="${LOG_PATH}#find" method="get"><div class="field"><label for="id">Record id, or index</label>
<input id="id" name="id" required maxlength="80" value="${search?.id ?? ""}" placeholder="Id or index" autocomplete="off" autocapitalize="off" spellcheck="false"></div>
<button class="button" type="submit">Find</button></form>
${search !== undefined && resultsOf(search)}</section>`;

const resultsOf = ({ id, found }: NonNullable<LogOverview["search"]>): Markup =>
  found.length === 0
    ? html`<p>The log has no entry for <code>${id}</code>. A new record is logged within seconds.</p>`
    : html`<ul class="rows">${found.map((place) => html`${entryRow(place)}`)}</ul>`;

const entryRow = (entry: Listed): Markup =>
  html`<li><span><a href="${pathOf(entry.entry_url)}">No. ${count(entry.index)}</a> ${ENTRY_MEANINGS[entry.type]}</span><a href="${pathOf(entry.proof_url)}">Proof</a>
<span class="note soft small">${
    entry.record_url === null
      ? html`<span class="mono">${entry.id}</span>`
      : html`<a class="mono" href="${pathOf(entry.record_url)}">${entry.id}</a>`
  }, ${instant(new Date(entry.at))}</span></li>`;

const witnessSection = ({
  witnesses,
}: LogOverview): Markup => html`<section aria-labelledby="witnesses"><h2 id="witnesses">Witnesses</h2>
${
  witnesses.length === 0
    ? html`<p class="measure">This service has no witnesses. Anyone with an older checkpoint can still check that the log only grew.</p>`
    : html`<ul class="rows">${witnesses.map(
        ({ name, vkey, size, cosigned_at }) =>
          html`<li><h3>${name}</h3><span>${size === null ? "none cosigned yet" : counted(size, "entry", "entries")}</span>
<span class="note soft small">${cosigned_at !== null && html`Cosigned on ${instant(new Date(cosigned_at))}. `}<span class="mono">${vkey}</span></span></li>`,
      )}</ul>`
}</section>`;

const verifySection = (
  log: LogOverview,
  baseUrl: string,
): Markup => html`<section aria-labelledby="verify"><h2 id="verify">Check it</h2>
<p class="measure">A proof contains the entry, its path to the root, and a cosigned checkpoint, so you can check it offline with nothing but this policy. Copy the policy once and keep it. If you fetched it from us for every check, you would have to trust us each time.</p>
${log.policy !== null && codeBlock({ id: "policy", caption: "policy.txt", text: log.policy })}
${codeBlock({ id: "check", caption: "Check a record", language: "bash", text: checkCommands(baseUrl) })}
${codeBlock({ id: "follow", caption: "Follow the whole log", language: "bash", text: followCommands(baseUrl, log.url) })}
<p class="measure">The log is served as C2SP <a href="https://c2sp.org/tlog-tiles" rel="noopener">tlog-tiles</a>, so any reader of such logs can follow it.</p></section>`;

const newestSection = ({
  newest,
}: LogOverview): Markup => html`<section aria-labelledby="newest"><h2 id="newest">Newest entries</h2>
${newest.length === 0 ? html`<p class="soft">None yet.</p>` : html`<ul class="rows">${newest.map(entryRow)}</ul>`}</section>`;

export function renderEntry(entry: ReturnType<typeof entryDocument>, meaning: string): string {
  const { witnessed_by: witnesses } = entry;
  return renderPage({
    title: `Log entry ${entry.index}`,
    description: `${meaning}, entry ${entry.index} of the transparency log.`,
    canonical: entry.entry_url,
    jsonUrl: `${entry.entry_url}?format=json`,
    main: html`<article class="deed gray"><p class="eyebrow"><a href="${LOG_PATH}">Transparency log</a></p>
<h1>No. ${count(entry.index)}</h1>
<p class="state">${meaning}</p>
${facts(
  [
    ["Type", html`<code>${entry.type}</code>`],
    [
      "Record",
      entry.record_url === null
        ? html`<code>${entry.id}</code>`
        : html`<a class="mono" href="${pathOf(entry.record_url)}">${entry.id}</a>`,
    ],
    ["Logged", instant(new Date(entry.at))],
    ["Witnessed by", witnesses.length === 0 ? "no witness yet" : witnesses.join(", ")],
    ["Proof", html`<a class="mono" href="${pathOf(entry.proof_url)}">${pathOf(entry.proof_url)}</a>`],
  ],
  "ruled",
)}</article>
<section aria-labelledby="leaf"><h2 id="leaf">The entry</h2>
<p class="measure">Its canonical form (RFC 8785) is the leaf, byte for byte.</p>
${codeBlock({ id: "entry", caption: "Entry", language: "json", text: asSeen(entry.entry) })}</section>`,
  });
}

/** Formats JSON and escapes invisible characters, which a stranger's URL may contain. */
const asSeen = (entry: unknown): string =>
  JSON.stringify(entry, null, 2).replace(/(?!\n)[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu, (character) =>
    Array.from({ length: character.length }, (_, place) => escaped(character.charCodeAt(place))).join(""),
  );

const escaped = (unit: number): string => `\\u${unit.toString(16).padStart(4, "0")}`;
