import { PRICES as VERDICTS } from "../../../api/arbiter/products.ts";
import { MENU } from "../../../api/cafe/menu.ts";
import { basic } from "../../../api/certificates/kinds/basic.ts";
import { SESSION_PRICES } from "../../../api/certificates/kinds/kind.ts";
import { suite } from "../../../api/certificates/kinds/suite.ts";
import { DEMO_PRICE } from "../../../api/escrow/demo/sell-espresso.ts";
import { SCORE_PRICES } from "../../../api/score/request.ts";

/** The products' prices from their own table, so no test repeats a price. */
export const PRICES = {
  basic: basic.price,
  suite: suite.price,
  ...SESSION_PRICES,
  verdict: VERDICTS.plain,
  scoredVerdict: VERDICTS.scored,
  score: SCORE_PRICES.one,
  scores: SCORE_PRICES.batch,
  demo: DEMO_PRICE,
  espresso: MENU.espresso.price,
} as const;
