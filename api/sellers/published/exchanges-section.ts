import { foreignLine, foreignLines } from "../../platform/page/foreign-text.ts";
import { counted, html, type Markup } from "../../platform/page/html.ts";
import { codeBlock } from "../../platform/page/page.ts";
import type { KeptBody, KeptExchange } from "../record.ts";

/** How much of a stranger's bytes a page repeats, in characters. All of it is in the evidence. */
const MOST = { url: 300, header: 200, headers: 40, body: 1_500, failure: 300 } as const;

export const exchangeId = (number: number): string => `exchange-${number}`;

/** Every request with its answer, as far as a page shows them. Whatever a seller sends is text, and no more. */
export const exchangesSection = (exchanges: readonly KeptExchange[], evidencePath: string): Markup =>
  exchanges.length === 0
    ? html``
    : html`<section aria-labelledby="exchanges"><h2 id="exchanges">Requests and answers</h2>
<p class="measure">In the order in which they were sent, shortened. All of it is in <a href="${evidencePath}">the evidence</a>. A character that cannot be seen is written like <code>\\u{202e}</code>.</p>
${exchanges.map(exchange)}</section>`;

const exchange = (one: KeptExchange): Markup => {
  const { number, request, answer } = one;
  const id = exchangeId(number);
  return html`<details><summary>${number}. ${foreignLine(request.method, 20)} ${pathOf(request.url)}: ${answer === null ? "no answer" : answer.status}</summary>
<div id="${id}">${codeBlock({ id: `${id}-request`, caption: `Request ${number}`, text: requestText(one) })}
${codeBlock({ id: `${id}-answer`, caption: `Answer ${number}`, text: answerText(one) })}</div></details>`;
};

const pathOf = (url: string): string => foreignLine(URL.canParse(url) ? new URL(url).pathname : url, 80);

const requestText = ({ request }: KeptExchange): string =>
  [
    `${foreignLine(request.method, 20)} ${foreignLine(request.url, MOST.url)}${request.family === undefined ? "" : ` over IPv${request.family}`}`,
    ...headerLines(request.headers),
    ...digest("query", request.querySha256),
    ...digest("body", request.bodySha256),
  ].join("\n");

const digest = (name: string, sha256: string | null): readonly string[] =>
  sha256 === null ? [] : [`(${name} left out; its SHA-256 is ${sha256})`];

const answerText = ({ answer, failure }: KeptExchange): string =>
  answer === null
    ? `No answer: ${foreignLine(failure ?? "", MOST.failure)}`
    : [`${answer.status}`, ...headerLines(answer.headers), ...bodyLines(answer.body)].join("\n");

function headerLines(headers: Readonly<Record<string, string>>): readonly string[] {
  const entries = Object.entries(headers);
  const more = entries.length - MOST.headers;
  return [
    ...entries
      .slice(0, MOST.headers)
      .map(([name, value]) => `${foreignLine(name, 80)}: ${foreignLine(value, MOST.header)}`),
    ...(more > 0 ? [`… and ${counted(more, "more header")}`] : []),
  ];
}

function bodyLines({ bytes, text, base64, isWhole }: KeptBody): readonly string[] {
  if (bytes === 0) return [];
  const shown = text === null ? foreignLine(base64 ?? "", MOST.body) : foreignLines(text, MOST.body);
  const kind = text === null ? "in base64" : "";
  const rest = isWhole && (text ?? base64 ?? "").length <= MOST.body ? [] : [`(${counted(bytes, "byte")} in all)`];
  return ["", ...(kind === "" ? [] : [`(${kind})`]), shown, ...rest];
}
