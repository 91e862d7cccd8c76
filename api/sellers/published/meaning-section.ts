import { html, type Markup } from "../../platform/page/html.ts";
import { VALID_DAYS } from "../record.ts";

/** What a seller's certificate states, what it does not, and how it is corrected. */
export const meaningSection =
  (): Markup => html`<section aria-labelledby="meaning"><h2 id="meaning">What this proves</h2>
<div class="two"><div><h3>It states</h3><ul>
<li>What the examiner sent to this origin, and what it answered, at the time of the exam.</li>
<li>That a file at the origin named the wallet that bought the exam, and these paths.</li>
<li>Each check is a published rule. The requests and answers show every finding.</li>
</ul></div><div><h3>It does not state</h3><ul>
<li>That what is sold is worth its price, true or lawful: nobody judged the content.</li>
<li>That other routes of the origin behave alike, or that this one will tomorrow.</li>
<li>That a seller cannot tell the examiner from a buyer.</li>
<li>Anything after the exam: nothing is silently examined again, and the certificate expires after ${VALID_DAYS} days.</li>
</ul></div></div>
<h3>Corrections</h3>
<p class="measure">No record is ever edited or deleted. If the examiner was wrong, a correction with its reason stands beside it, and it no longer counts. That is the only ground: a seller who has mended a fault passes a new exam. Ask through <a href="/.well-known/security.txt">the security contact</a>.</p></section>`;
