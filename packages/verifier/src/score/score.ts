import type { BehavioralCapability } from "../vocabulary.ts";
import { type ComponentName, MAX_POINTS, SCORE_VERSION } from "./bands.ts";
import { type Achieved, capsOf, tierOf } from "./caps.ts";
import { flagsOf, judgeBehavior, judgePaymentCapability } from "./certificates.ts";
import { judgeCounterparties } from "./counterparties.ts";
import { judgeEscrow } from "./escrow.ts";
import type { ScoreFacts } from "./facts.ts";
import { inOrder } from "./order.ts";
import { activeWeeks, judgePayments, judgeRecency, judgeWeeks } from "./payments.ts";
import { type Assessment, type Component, type Evidence, type Fact, inTransaction, type Judged } from "./record.ts";

/**
 * Computes the risk score of a wallet: a pure function over whole numbers that does not depend on the order of the
 * facts. `facts` satisfy `parseScoreFacts`.
 */
export function score(facts: ScoreFacts): Assessment {
  const ordered = inOrder(facts);
  const components = judge(ordered);
  const points = Object.values(components).reduce((sum, component) => sum + component.points, 0);
  const caps = capsOf(ordered, points, achieved(ordered, components));
  const limited = Math.max(0, Math.min(points, ...caps.map(({ limit }) => limit)));
  const { wallet, as_of, as_of_block } = facts;
  return {
    wallet,
    score: limited,
    tier: tierOf(limited, caps),
    score_version: SCORE_VERSION,
    as_of,
    as_of_block,
    flags: flagsOf(ordered),
    caps,
    components,
    evidence: evidenceOf(
      Object.values(components).flatMap((component) => component.facts),
      facts.chain.network,
    ),
  };
}

type Components = Assessment["components"];

function judge(facts: ScoreFacts): Components {
  const component = (name: ComponentName, { points, facts }: Judged): Component => ({
    points,
    max: MAX_POINTS[name],
    facts,
  });
  const counterparties = judgeCounterparties(facts);
  const behaviour = (name: Extract<BehavioralCapability, ComponentName>) => component(name, judgeBehavior(facts, name));
  return {
    payment_capability: component("payment_capability", judgePaymentCapability(facts)),
    scam_resistance: behaviour("scam_resistance"),
    recipient_awareness: behaviour("recipient_awareness"),
    independent_counterparties: component("independent_counterparties", counterparties),
    payments: component("payments", judgePayments(facts, counting(counterparties))),
    active_weeks: component("active_weeks", judgeWeeks(facts)),
    recency: component("recency", judgeRecency(facts)),
    escrow_outcomes: component("escrow_outcomes", judgeEscrow(facts)),
  };
}

const counting = ({ facts }: Judged): number => facts.filter(({ counts }) => counts).length;

const achieved = ({ chain }: ScoreFacts, components: Components): Achieved => ({
  behavioural_passes: counting(components.scam_resistance) + counting(components.recipient_awareness),
  independent_counterparties: counting(components.independent_counterparties),
  active_weeks: activeWeeks(chain).length,
});

/** Returns each page and each transaction once, in the order of the facts. */
function evidenceOf(facts: readonly Fact[], network: string): readonly Evidence[] {
  const urls = facts.flatMap((fact) => ("url" in fact ? [fact.url] : []));
  const transactions = facts.flatMap((fact) => ("transaction" in fact ? [fact.transaction] : []));
  return [
    ...[...new Set(urls)].map((url) => ({ url })),
    ...[...new Set(transactions)].map((one) => ({ network, ...inTransaction(one) })),
  ];
}
