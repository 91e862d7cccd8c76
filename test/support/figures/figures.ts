/** A price or limit as set in one file, and another value for it. */
interface Figure {
  readonly file: string;
  /** The file's text; each `from` occurs at least once. */
  readonly changes: readonly { readonly from: string; readonly to: string }[];
}

const figure = (file: string, ...changes: readonly (readonly [from: string, to: string])[]): Figure => ({
  file,
  changes: changes.map(([from, to]) => ({ from, to })),
});

/** Every price and limit that a text may print, with another value. */
export const FIGURES: readonly Figure[] = [
  figure("api/certificates/kinds/basic.ts", ["price: 250_000n", "price: 310_000n"]),
  figure("api/certificates/kinds/suite.ts", ["price: 750_000n", "price: 830_000n"], ["SECONDS = 900", "SECONDS = 800"]),
  figure("api/certificates/kinds/kind.ts", [
    "entry: 500_000n, control: 100_000n",
    "entry: 570_000n, control: 130_000n",
  ]),
  figure("api/certificates/kinds/scam.ts", ["ABSURD = 50_000_000n", "ABSURD = 61_000_000n"]),
  figure(
    "api/certificates/kinds/retry.ts",
    ["ORDERS = [80_000n, 120_000n]", "ORDERS = [70_000n, 160_000n]"],
    ["WINDOW_SECONDS = 120", "WINDOW_SECONDS = 140"],
    ["LATE_SECONDS = 30", "LATE_SECONDS = 35"],
  ),
  figure(
    "api/score/request.ts",
    ["one: 100_000n, batch: 500_000n", "one: 140_000n, batch: 580_000n"],
    ["WALLETS = 25", "WALLETS = 27"],
  ),
  figure(
    "api/arbiter/products.ts",
    ["plain: 250_000n, scored: 600_000n", "plain: 290_000n, scored: 660_000n"],
    ["DAYS = 7", "DAYS = 9"],
  ),
  figure(
    "api/sellers/products.ts",
    ["EXAM_PRICE = 1_000_000n", "EXAM_PRICE = 1_230_000n"],
    ["CEILING = 150_000n", "CEILING = 180_000n"],
  ),
  figure("api/settlement-status/statement-request.ts", ["PRICE = 50_000n", "PRICE = 73_000n"]),
  figure("api/escrow/demo/sell-espresso.ts", ["PRICE = 100_000n", "PRICE = 170_000n"]),
  figure(
    "api/cafe/menu.ts",
    ["price: 100_000n", "price: 190_000n"],
    ["price: 250_000n", "price: 260_000n"],
    ["price: 1_000_000n", "price: 1_120_000n"],
    ["price: 5_000_000n", "price: 5_230_000n"],
    ["RECEIPTS = 10", "RECEIPTS = 12"],
  ),
  figure(
    "packages/mcp/src/products.ts",
    ['"/score", price: 100_000n', '"/score", price: 140_000n'],
    ['"/score/batch", price: 500_000n', '"/score/batch", price: 580_000n'],
    ['"/test/basic", price: 250_000n', '"/test/basic", price: 310_000n'],
    ['"/test/suite", price: 750_000n', '"/test/suite", price: 830_000n'],
    ['"/arbiter/verify", price: 250_000n', '"/arbiter/verify", price: 290_000n'],
    ['"/arbiter/verify/scored", price: 600_000n', '"/arbiter/verify/scored", price: 660_000n'],
  ),
  figure(
    "packages/mcp/src/vocabulary.ts",
    ["batchWallets: 25", "batchWallets: 27"],
    ["certificateDays: 30", "certificateDays: 37"],
    ["activityDays: 90", "activityDays: 97"],
    ["escrowTimeoutMinutes: 30", "escrowTimeoutMinutes: 40"],
  ),
  figure(
    "packages/escrow/src/terms.ts",
    ["FEE_BPS = 100", "FEE_BPS = 150"],
    ["REFUNDABLE_AFTER_SECONDS = 1800", "REFUNDABLE_AFTER_SECONDS = 2400"],
  ),
  figure("api/certificates/certificate.ts", ["VALID_FOR_DAYS = 30", "VALID_FOR_DAYS = 37"]),
  figure("api/platform/index/activity.ts", ["ACTIVITY_DAYS = 90", "ACTIVITY_DAYS = 97"]),
  figure("api/platform/http/request.ts", ["MAX_BODY_BYTES = 64 *", "MAX_BODY_BYTES = 80 *"]),
  figure("api/payments/schemes/exact.ts", ["MAX_TIMEOUT_SECONDS = 120", "MAX_TIMEOUT_SECONDS = 180"]),
  figure("api/board/statistics.ts", ["WINDOW_DAYS = 30", "WINDOW_DAYS = 34"]),
  figure("packages/verifier/src/score/facts.ts", ["WINDOW_DAYS = 90", "WINDOW_DAYS = 97"]),
  figure(
    "packages/verifier/src/score/bands.ts",
    ["from: 250_000,", "from: 270_000,"],
    ["from: 1_000_000,", "from: 1_130_000,"],
    ["from: 5_000_000,", "from: 5_310_000,"],
    ["withinDays: 7,", "withinDays: 8,"],
    ["withinDays: 30,", "withinDays: 33,"],
  ),
  figure(
    "api/site/score-chapter.ts",
    ["value: 5_000_000n", "value: 5_340_000n"],
    ["value: 1_000_000n", "value: 1_150_000n"],
  ),
];

/** How texts print the service's values; none of them may appear once the values have changed. */
export const STALE: readonly RegExp[] = [
  /(?<![\d.])(0\.10|0\.25|0\.50|0\.60|0\.75|1\.00|1\.95|5\.00)(?![\d.])/g,
  /(?<![\d.])50 USD|\bother 50\b|(?<![\d.])50\.00(?!\d)/g,
  /"(100000|250000|500000|600000|750000|1000000|5000000|50000000)"|\b(100000|250000|500000|600000|750000|1000000|5000000) atomic/g,
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

/** How they print the other values: each appears somewhere. */
export const PRINTED: readonly string[] = [
  ...["0.31", "0.83", "0.57", "0.70", "0.13", "61 USD", "other 61", "0.14", "0.58", "0.29", "0.66", "0.17", "0.073"],
  ...[
    "0.19",
    "0.26",
    "1.12",
    "5.23",
    "2.23",
    "37 days",
    "97 days",
    "34 days",
    "ithin 9 days",
    "27 wallets",
    "28 wallets",
  ],
  ...["up to 27", "1.5%", "40 minutes", "80 KiB", "800 seconds", "next 12 receipts", "5 or more wallets"],
];
