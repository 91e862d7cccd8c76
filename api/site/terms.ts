import type { Policy } from "../arbiter/policy/policy.ts";
import { CORRECTION_DAYS } from "../arbiter/products.ts";
import { VALID_FOR_DAYS } from "../certification/certificate.ts";
import { costOf } from "../discovery/paid-listing.ts";
import { FEE_TEXT, TIMEOUT_TEXT } from "../escrow/payment.ts";
import type { Listed } from "../kernel/route.ts";

export interface Section {
  readonly title: string;
  readonly paragraphs: readonly string[];
}

export interface TermsParts {
  readonly routes: readonly Listed[];
  /** The arbiter's policy in force. */
  readonly policy: Policy;
  readonly contact: string;
}

const rule = ({ rules }: Policy, number: number): string => rules.find((one) => one.number === number)?.text ?? "";

/** The terms of use, for people and programs alike. Prices are those of the route table. */
export const terms = ({ routes, policy, contact }: TermsParts): readonly Section[] => [
  {
    title: "What is sold",
    paragraphs: [
      "Each paid route sells one answer to one request. There are no accounts, subscriptions or credits. The terms in a 402 answer are the offer; a payment that is signed for exactly them accepts it.",
      `Prices: ${prices(routes)}.`,
    ],
  },
  {
    title: "Payment",
    paragraphs: [
      "A payment is a USDC authorization that settles on the chain, and what settles is final. The same payment, sent again, returns the same answer and is never charged twice. A request that is refused before settlement costs nothing.",
      "Test USDC on Base Sepolia are worth nothing.",
    ],
  },
  {
    title: "Certificates and scores",
    paragraphs: [
      `A certificate states what one test run showed, as a fact observed on the chain. It is fresh for ${VALID_FOR_DAYS} days and stays public for ever; it is not tested again by itself. It is neither an opinion nor a guarantee of safety.`,
      "A risk score is computed from published facts by published rules; anybody can compute it again. It is not a credit rating and not advice.",
      "Certificates, scores and verdicts name wallets. Wallets and their payments are public on the chain; the service adds no names of people to them.",
    ],
  },
  {
    title: "Escrow",
    paragraphs: [
      `The escrow is a contract without an owner. It can pay the merchant, less ${FEE_TEXT}, or refund the buyer in full, and nothing else. ${TIMEOUT_TEXT} after a payment was held anybody may have it refunded.`,
    ],
  },
  {
    title: "Verdicts",
    paragraphs: [
      rule(policy, 8),
      rule(policy, 11),
      rule(policy, 10),
      `An error of the arbiter is corrected by a verdict that supersedes the first. Either party may ask for a review within ${CORRECTION_DAYS} days, through the contact below.`,
    ],
  },
  {
    title: "Use",
    paragraphs: [
      "Do not flood the service, and do not send requests that are meant to break it. Reports of weaknesses are welcome: look at the service with wallets and records of your own, and tell us before you tell others.",
      "The service is provided as it is. To the extent that the law allows, total liability for an answer is limited to what was paid for it.",
    ],
  },
  {
    title: "Changes and contact",
    paragraphs: [
      "A change applies to requests made after it was published here. Documents that were issued stay as they are.",
      `Contact: ${contact}`,
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

/** The terms as Markdown. */
export const termsMarkdown = (sections: readonly Section[]): string =>
  ["# Terms of use", ...sections.flatMap(({ title, paragraphs }) => [`## ${title}`, ...paragraphs])].join("\n\n");
