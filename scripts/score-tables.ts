import { formatUsd } from "../api/platform/money.ts";
import {
  CAP_NAMES,
  CERTIFICATES_COST,
  COMPONENT_NAMES,
  dilution,
  dilutionFee,
  FAILED,
  FORGED_A,
  needs,
  RULES,
  ringSize,
  SERVED,
  smear,
} from "../api/site/score-chapter.ts";
import {
  CAP_LIMITS,
  type CapName,
  type ComponentName,
  MAX_POINTS,
  TIERS,
} from "../packages/verifier/src/score/bands.ts";
import { table } from "./table.ts";

const usdc = (atomic: bigint): string => `${formatUsd(atomic)} USDC`;

const count = (n: number): string => n.toLocaleString("en-US");

const componentsTable = (): string =>
  table(
    ["Component", "At most", "Points"],
    (Object.entries(MAX_POINTS) as [ComponentName, number][]).map(([name, most]) => [
      `${COMPONENT_NAMES[name]} \`${name}\``,
      String(most),
      RULES[name],
    ]),
  );

const tiersTable = (): string =>
  table(
    ["Tier", "From", "Also requires"],
    TIERS.map(({ tier, from }) => [tier, String(from), needs(tier)]),
  );

const capsTable = (): string =>
  table(
    ["Cap", "Maximum score", "When"],
    (Object.entries(CAP_LIMITS) as [CapName, number][]).map(([name, limit]) => [
      `\`${name}\``,
      String(limit),
      CAP_NAMES[name],
    ]),
  );

const forgeryTable = (): string =>
  table(
    [
      "Payees that look independent",
      "Payments",
      "Sum of the payments",
      "Different weeks",
      "Wallets in the ring",
      "Cost of the tests",
    ],
    Object.values(FORGED_A).map((history) => {
      const { counterparties, payments, value, weeks } = history;
      return [counterparties, payments, usdc(value), weeks, ringSize(history), usdc(CERTIFICATES_COST)].map(String);
    }),
  );

const smearTable = (): string =>
  table(
    ["Good buyer-days of the merchant", "Refunded buyer-days that cost 1 point", "3 points", "6 points"],
    SERVED.map((served) => [served, ...[1, 3, 6].map((points) => smear(served, points))].map((n) => count(n))),
  );

const dilutionTable = (): string =>
  table(
    ["Refunded buyer-days", "Good buyer-days that hide them", "Fees for the good ones"],
    FAILED.map((failed) => [count(failed), count(dilution(failed)), usdc(dilutionFee(dilution(failed)))]),
  );

/** The generated tables of docs/score.md, by name. */
export const SCORE_TABLES: Readonly<Record<string, string>> = {
  components: componentsTable(),
  tiers: tiersTable(),
  caps: capsTable(),
  forgery: forgeryTable(),
  smear: smearTable(),
  dilution: dilutionTable(),
};
