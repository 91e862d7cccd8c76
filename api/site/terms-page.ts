import { CORRECTION_DAYS, type Policy } from "../arbiter/index.ts";
import { VALID_FOR_DAYS } from "../certificates/index.ts";
import { costOf } from "../discovery/index.ts";
import { FEE_TEXT, TIMEOUT_TEXT } from "../escrow/index.ts";
import type { Listed } from "../platform/http/route.ts";
import { html } from "../platform/page/html.ts";
import { renderPage } from "../platform/page/page.ts";

export const renderTerms = (sections: readonly Section[], baseUrl: string): string =>
  renderPage({
    title: "Terms of use",
    description: "The terms for paying this service: prices, the meaning of its responses, and liability.",
    canonical: `${baseUrl}/terms`,
    main: html`<div class="hero"><h1>Terms of use</h1></div>
${sections.map(
  ({ title, paragraphs }) => html`<section><h2>${title}</h2>
${paragraphs.map((text) => html`<p class="measure">${text}</p>`)}</section>`,
)}`,
  });

export interface Section {
  readonly title: string;
  readonly paragraphs: readonly string[];
}

export interface TermsParts {
  readonly routes: readonly Listed[];
  /** The arbiter's policy in force. */
  readonly policy: Policy;
  readonly contact: string;
  /** The operator's name. */
  readonly operator: string;
}

const rule = ({ rules }: Policy, number: number): string => rules.find((one) => one.number === number)?.text ?? "";

/** The terms of use, for people and programs alike. Prices come from the route table. */
export const terms = ({ routes, policy, operator, contact }: TermsParts): readonly Section[] => [
  {
    title: "What we sell",
    paragraphs: [
      "Each payment buys one response to one request. There are no accounts, subscriptions or credits. The terms in a 402 response are the offer; a payment signed for exactly those terms accepts it.",
      `Prices: ${prices(routes)}.`,
    ],
  },
  {
    title: "Payment",
    paragraphs: [
      "A payment is a USDC authorization that settles on-chain, and settlement is final. Sending the same payment again returns the same response and is never charged twice. A request refused before settlement costs nothing.",
      "Test USDC on Base Sepolia has no value.",
    ],
  },
  {
    title: "Certificates and scores",
    paragraphs: [
      `A certificate states what one test run showed, as a fact observed on-chain. It is fresh for ${VALID_FOR_DAYS} days and stays public permanently; nothing is re-tested automatically. It is not an opinion or a guarantee of safety.`,
      "A risk score is computed from published facts by published rules; anyone can recompute it. It is not a credit rating or advice.",
      "Certificates, scores and verdicts identify wallets. Wallets and their payments are public on-chain; the service does not attach people’s names to them.",
    ],
  },
  {
    title: "Escrow",
    paragraphs: [
      `The escrow is a contract with no owner. It can pay the merchant, minus a fee of ${FEE_TEXT}, or refund the buyer in full, and nothing else. Once a payment has been held for ${TIMEOUT_TEXT}, anyone may trigger the refund.`,
    ],
  },
  {
    title: "Verdicts",
    paragraphs: [
      rule(policy, 8),
      rule(policy, 11),
      rule(policy, 10),
      `If the arbiter makes an error, it issues a corrected verdict that supersedes the first. Either party may request a review within ${CORRECTION_DAYS} days through the contact below.`,
    ],
  },
  {
    title: "Use",
    paragraphs: [
      "Do not flood the service or send requests meant to break it. Security reports are welcome: test only with your own wallets and records, and tell us before you tell anyone else.",
      "The service is provided as is. To the extent permitted by law, total liability for a response is limited to the amount paid for it.",
    ],
  },
  {
    title: "Changes and contact",
    paragraphs: [
      "A change applies to requests made after it is published here. Documents already issued do not change.",
      `Operator: ${operator}. Contact: ${contact}`,
    ],
  },
];

const prices = (routes: readonly Listed[]): string =>
  routes
    .flatMap((route) => {
      const cost = costOf(route);
      return cost === null ? [] : [`${route.method} ${route.path} ${cost}`];
    })
    .join(", ");

export const termsMarkdown = (sections: readonly Section[]): string =>
  ["# Terms of use", ...sections.flatMap(({ title, paragraphs }) => [`## ${title}`, ...paragraphs])].join("\n\n");
