import { html } from "../platform/page/html.ts";
import { renderPage } from "../platform/page/page.ts";
import { ALSO_KEPT, STORED_DATA } from "./stored-data.ts";

export interface PrivacyParts {
  /** The operator's name, from the settings. */
  readonly operator: string;
  /** A URI for reports of abuse, and for requests about privacy. */
  readonly contact: string;
}

const REQUESTS =
  "To ask what is stored about you, to have something removed, or to report abuse, write to the contact below and include the URL of the record. Records that other people’s decisions depend on are kept: certificates, verdicts, evaluations, and the log. Text that a third party supplied, and that a record refers to by its hash, can be removed. The record then shows the removal, and every proof still verifies.";

export const renderPrivacy = ({ operator, contact }: PrivacyParts, baseUrl: string): string =>
  renderPage({
    title: "Privacy",
    description: "The data that the service stores, for how long and why, and how to contact us.",
    canonical: `${baseUrl}/privacy`,
    main: html`<div class="hero"><h1>Privacy</h1></div>
<section aria-labelledby="stored"><h2 id="stored">What is stored</h2>
<table class="prose stack"><thead><tr><th scope="col">What</th><th scope="col">For how long</th><th scope="col">Why</th></tr></thead>
<tbody>${STORED_DATA.map(({ what, kept, why }) => html`<tr><td>${what}</td><td>${kept}</td><td>${why}</td></tr>`)}</tbody></table>
<p class="measure">${ALSO_KEPT}</p></section>
<section aria-labelledby="requests"><h2 id="requests">Requests and abuse</h2>
<p class="measure">${REQUESTS}</p>
<p class="measure">Operator: ${operator}. Contact: ${contact}</p></section>`,
  });

export const privacyMarkdown = ({ operator, contact }: PrivacyParts): string =>
  [
    "# Privacy",
    "## What is stored",
    [
      "| What | For how long | Why |",
      "| --- | --- | --- |",
      ...STORED_DATA.map(({ what, kept, why }) => `| ${what} | ${kept} | ${why} |`),
    ].join("\n"),
    ALSO_KEPT,
    "## Requests and abuse",
    REQUESTS,
    `Operator: ${operator}. Contact: ${contact}`,
  ].join("\n\n");
