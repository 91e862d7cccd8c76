import { html } from "../platform/page/html.ts";
import { renderPage } from "../platform/page/page.ts";

export interface ProblemText {
  readonly status: number;
  readonly title: string;
  readonly detail: string;
  readonly request_id: string;
}

/** A problem as a page, for a browser that requested something that does not exist. */
export const renderProblem = ({ status, title, detail, request_id }: ProblemText): string =>
  renderPage({
    title: `${status} ${title}`,
    description: detail,
    main: html`<div class="hero"><p class="eyebrow">Error ${status}</p>
<h1>${title}</h1>
<p class="lead">${detail}</p>
<p class="soft small">Request <code>${request_id}</code></p>
<p class="actions"><a class="button" href="/">Home</a> <a class="button quiet" href="/#verify">Check a wallet</a></p></div>`,
  });
