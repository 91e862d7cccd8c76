import { explorerTransactionUrl, MAIN_NETWORK } from "../../platform/networks.ts";
import type { Hex } from "../../platform/wallet.ts";
import { html, type Markup } from "../../platform/page/html.ts";
import { facts } from "../../platform/page/page.ts";
import { type Publication, publicationEntry } from "../agent-registries/publication.ts";

const TITLES = { reputation: "Feedback", validation: "Validation response" } as const;

/** What the registries of ERC-8004 are told about the certificate; empty for most. */
export const publicationsSection = (publications: readonly Publication[], baseUrl: string): Markup =>
  publications.length === 0
    ? html``
    : html`<section aria-labelledby="erc8004"><h2 id="erc8004">ERC-8004</h2>
${publications.map((publication) => {
  const { registry, agent_id, status, reason, contract, credential_url } = publicationEntry(publication, baseUrl);
  return facts(
    [
      [TITLES[registry], html`<strong>${status}</strong>${reason === null ? "" : ` (${reason})`}`],
      ["Agent", html`<code>${agent_id}</code>`],
      ["Registry", html`<code>${contract}</code>`],
      ...(publication.transaction === null ? [] : [["Transaction", link(publication.transaction)] as const]),
      ...(publication.withdrawal === null ? [] : [["Withdrawn in", link(publication.withdrawal)] as const]),
      ["Evidence", html`<a href="${credential_url}">This certificate as a credential</a>`],
    ],
    "ruled",
  );
})}</section>`;

const link = (transaction: Hex): Markup =>
  html`<a class="mono" href="${explorerTransactionUrl(MAIN_NETWORK, transaction)}" rel="noopener">${transaction}</a>`;
