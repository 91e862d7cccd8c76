import { PRICES } from "../../../api/arbiter/products.ts";
import { MENU } from "../../../api/cafe/menu.ts";
import { BAITED_KINDS, KINDS } from "../../../api/certificates/kinds/index.ts";
import { totalCost } from "../../../api/certificates/kinds/kind.ts";
import { scam } from "../../../api/certificates/kinds/scam.ts";
import { briefUsd, formatUsd } from "../../../api/platform/money.ts";
import { SCORE_PRICES } from "../../../api/score/request.ts";
import { EXAM_PRICE } from "../../../api/sellers/products.ts";
import { CERTIFICATES_COST } from "../../../api/site/score-chapter.ts";

/** The prices and sums that a text may print, in some form. */
const anyOf = (form: (price: bigint) => string): string =>
  [
    ...KINDS.map(({ price }) => price),
    ...BAITED_KINDS.flatMap((kind) => [kind.entry, kind.control, totalCost(kind)]),
    ...[...Object.values(SCORE_PRICES), ...Object.values(PRICES), EXAM_PRICE, CERTIFICATES_COST],
    ...Object.values(MENU).map(({ price }) => price),
  ]
    .map((price) => form(price).replaceAll(".", "\\."))
    .join("|");

const ABSURD = briefUsd(scam.bait.value);

/** How texts print the service's values; none of them may appear once the values have changed. */
export const STALE: readonly RegExp[] = [
  new RegExp(`(?<![\\d.])(${anyOf(formatUsd)})(?![\\d.])`, "g"),
  new RegExp(`(?<![\\d.])${ABSURD} USD|\\bother ${ABSURD}\\b|(?<![\\d.])${ABSURD}\\.00(?!\\d)`, "g"),
  new RegExp(`"(${anyOf(String)}|${scam.bait.value})"|\\b(${anyOf(String)}) atomic`, "g"),
  /\b(30|90) days/gi,
  /\bwithin 7 days/gi,
  /\b(25|26) (different )?(wallets|scores)|\bup to 25\b/gi,
  /(?<![\d.])1 ?%/g,
  /\b30 minutes|\btwo minutes/gi,
  /\b64 KiB/g,
  /\b900 seconds/g,
  /\bnext 10 receipts/g,
  /\b6 or more wallets/g,
];
