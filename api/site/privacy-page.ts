import { html } from "../platform/page/html.ts";
import { renderPage } from "../platform/page/page.ts";

interface StoredData {
  readonly what: string;
  /** The tables of the database that hold it. */
  readonly tables: readonly string[];
  readonly kept: string;
  readonly why: string;
}

const FOREVER = "permanently";

/** Everything that the service stores. Each table of the database is in exactly one row. */
export const STORED_DATA: readonly StoredData[] = [
  {
    what: "Settled payments: the authorization, the paid request, and its response",
    tables: ["payment"],
    kept: `${FOREVER}; the signature only until the settlement is final. Refused and failed payments: until an hour after they expire`,
    why: "The same payment gets the same response again, and is never charged twice",
  },
  {
    what: "Certificates, proofs, and credentials of wallets",
    tables: ["certificate", "published_proof", "certificate_credential", "publication"],
    kept: FOREVER,
    why: "These are the public records that payers buy",
  },
  {
    what: "Runs of behavioral tests, with a SHA-256 of the wallet and the client address together",
    tables: ["test_session", "lost_order"],
    kept: FOREVER,
    why: "A retried request is matched to its run, and a stranger’s is not",
  },
  {
    what: "Rehearsals",
    tables: ["rehearsal_session", "rehearsal_lost_order"],
    kept: "7 days",
    why: "A rehearsal can be repeated within the hour, and is never published",
  },
  {
    what: "Money that reached a decoy, and its refund",
    tables: ["decoy_watch", "decoy_transfer", "decoy_debt"],
    kept: `the sums ${FOREVER}; single transfers 30 days`,
    why: "It is sent back once",
  },
  {
    what: "Verdicts of the arbiter, with the claims that were judged",
    tables: ["verdict", "verdict_transfer"],
    kept: FOREVER,
    why: "A transfer is judged once, and a wrong verdict can be corrected. Deliverables are not stored",
  },
  {
    what: "Evaluations of escrowed deliveries, and contests. For each delivery, only its length and SHA-256",
    tables: [
      "escrow_evaluation",
      "escrow_task",
      "escrow_window",
      "escrow_contest",
      "escrow_contest_answer",
      "escrow_gas",
    ],
    kept: `${FOREVER}; sums of gas 7 days`,
    why: "They show why money was released or refunded",
  },
  {
    what: "Exams of sellers: the request, the result, payments, and corrections",
    tables: [
      "seller_exam",
      "seller_exam_result",
      "seller_exam_correction",
      "seller_exam_grant",
      "seller_exam_settlement",
      "seller_exam_reversal",
      "seller_exam_refund",
      "seller_exam_removal",
      "seller_exam_signature",
    ],
    kept: `${FOREVER}. The evidence, up to 4 KiB of each response from the seller, can be removed on a valid request; its digest, the result, and a public note of the removal remain`,
    why: "Anyone can check a result against the seller’s own responses",
  },
  {
    what: "Exams in progress, exam rehearsals, and sellers’ quotes",
    tables: ["seller_exam_open", "seller_exam_work", "seller_exam_watch", "seller_probe", "seller_rehearsal"],
    kept: "until the exam ends; quotes an hour, rehearsals a day",
    why: "An origin has one open exam, at the quoted price",
  },
  {
    what: "The transparency log and its cosignatures",
    tables: [
      "log",
      "log_pending",
      "log_entry",
      "log_tile",
      "log_checkpoint",
      "log_served",
      "log_cosignature",
      "log_witness",
      "log_anchor",
      "log_vouched",
    ],
    kept: FOREVER,
    why: "No one, including the operator, can change or hide a public record unnoticed",
  },
  {
    what: "Effects of chain reorganizations on payments",
    tables: ["settlement_mark"],
    kept: FOREVER,
    why: "A certificate no longer counts if its payment is gone",
  },
  {
    what: "Transactions that the service sent",
    tables: ["relay", "relay_member", "relay_upkeep"],
    kept: "30 days after they are final, encrypted",
    why: "Each is sent once, and resent only if a node loses it",
  },
  {
    what: "Receipts of the café, with the nickname that a buyer chose",
    tables: ["cafe_receipt", "cafe_round"],
    kept: FOREVER,
    why: "A receipt’s URL keeps working",
  },
  {
    what: "Copies of on-chain data about wallets and authorizations",
    tables: ["inflow", "score_lookup", "lookup_mark", "authorization_fact"],
    kept: "a day to 30 days after the last use; a table of fixed size",
    why: "Fewer requests to nodes",
  },
  {
    what: "IP addresses of busy clients and of clients that look up wallets or payments, with a count",
    tables: ["request_count", "lookup_budget"],
    kept: "2 minutes; look-ups 24 hours",
    why: "All processes apply the same limits",
  },
  {
    what: "Used nonces of sign-ins",
    tables: ["sign_in"],
    kept: "an hour",
    why: "A sign-in works once",
  },
  {
    what: "Anonymous totals, and the number of certificates of each wallet",
    tables: ["counter", "counter_change", "certificate_change", "certificate_tally", "certificate_day_wallet"],
    kept: FOREVER,
    why: "Statistics are shown without counting rows",
  },
  {
    what: "The latest readings of the chains and the service’s own accounts",
    tables: ["observation"],
    kept: "until the next reading, a few seconds later",
    why: "All processes share one reading for their metrics",
  },
  {
    what: "The operator’s own settings that must not change unnoticed",
    tables: ["installation"],
    kept: FOREVER,
    why: "A typo cannot send revenue to a stranger",
  },
];

/** Data outside the database. */
const ALSO_KEPT =
  "Request logs have the method, path, status, duration, and a request ID, but no client address, header, query, or body. The operator decides how long they are kept. Payments and wallets are public on-chain, where no one can remove them. There are no cookies and no third-party scripts.";

interface PrivacyParts {
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
