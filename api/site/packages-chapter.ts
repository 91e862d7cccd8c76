import { html, type Markup } from "../platform/page/html.ts";
import { codeBlock } from "../platform/page/page.ts";
import { PACKAGES, packageUrl, tarballName } from "./packages/published.ts";
import type { Docs } from "./groups.ts";
import { installAll } from "./samples.ts";

/** Our npm packages, which this service serves itself. */
export const packagesChapter = ({
  baseUrl,
  tarballs,
}: Docs): Markup => html`<section class="chapter" aria-labelledby="packages"><h2 id="packages"><span class="eyebrow">Packages</span> Install our packages</h2>
<p class="measure">This service hosts its own npm packages, under the MIT license; they are not on any registry. Download a package and install the file, or run its program with <code>npx -y --allow-remote=root</code> and the URL: from version 12 on, npm fetches a URL only where that is allowed. Also available <a href="/packages">as JSON</a>.</p>
${codeBlock(installAll(baseUrl))}
<table class="prose stack"><thead><tr><th scope="col">Package</th><th scope="col">What it does</th><th scope="col">Node</th><th scope="col">Integrity</th></tr></thead><tbody>${PACKAGES.map(
  (published) =>
    html`<tr><th scope="row"><a href="${packageUrl(baseUrl, published)}">${published.name}</a> ${published.version}</th><td>${published.description}</td><td>${published.node}</td><td>${integrity(tarballs.get(tarballName(published))?.integrity)}</td></tr>`,
)}</tbody></table></section>`;

const integrity = (text: string | undefined): Markup =>
  text === undefined ? html`Not built` : html`<code>${text}</code>`;
