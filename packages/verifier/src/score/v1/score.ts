import { type ComponentName, MAX_POINTS, SCORE_VERSION } from "./bands.ts";
import { type Achieved, capsOf, tierOf } from "./caps.ts";
import { flagsOf, judgeBehaviour, judgePaymentCapability } from "./certificates.ts";
import { judgeCounterparties } from "./counterparties.ts";
import { judgeEscrow } from "./escrow.ts";
import type { ScoreFacts, ScoreFactsOf } from "./facts.ts";
import { inOrder } from "./order.ts";
import { activeWeeks, judgePayments, judgeRecency, judgeWeeks } from "./payments.ts";
import type {
  Assessment,
  AssessmentOf,
  BehaviouralCapability,
  Component,
  Evidence,
  Judged,
  WalletFact,
} from "./record.ts";

/**
 * The risk score of a wallet: score_version 1, a pure function in whole numbers. The same facts give the same answer,
 * in whatever order. `facts` satisfy `parseScoreFacts`.
 */
export const score = (facts: ScoreFacts): Assessment => assess(facts, judgeEscrow(facts), SCORE_VERSION);

/** A fact of any version, as far as its evidence goes. */
type Found = WalletFact | { readonly counts: boolean; readonly tx: `0x${string}` };

/** The same with a version's own judgement of the wallet as merchant. */
export function assess<Version extends number, Outcome extends Found>(
  facts: ScoreFactsOf<unknown>,
  escrow: Judged<Outcome>,
  version: Version,
): AssessmentOf<Version, WalletFact | Outcome> {
  const ordered = inOrder(facts);
  const components = judge(ordered, escrow);
  const points = Object.values(components).reduce((sum, component) => sum + component.points, 0);
  const caps = capsOf(ordered, points, achieved(ordered, components));
  const limited = Math.max(0, Math.min(points, ...caps.map(({ limit }) => limit)));
  const { wallet, as_of, as_of_block } = facts;
  return {
    wallet,
    score: limited,
    tier: tierOf(limited, caps),
    score_version: version,
    as_of,
    as_of_block,
    components,
    flags: flagsOf(ordered),
    caps,
    evidence: evidenceOf(
      Object.values(components).flatMap((component) => component.facts),
      facts.chain.network,
    ),
  };
}

type Components<Outcome> = AssessmentOf<number, WalletFact | Outcome>["components"];

function judge<Outcome>(facts: ScoreFactsOf<unknown>, escrow: Judged<Outcome>): Components<Outcome> {
  const component = <One>(name: ComponentName, { points, facts }: Judged<One>): Component<One> => ({
    points,
    max: MAX_POINTS[name],
    facts,
  });
  const counterparties = judgeCounterparties(facts);
  const behaviour = (name: Extract<BehaviouralCapability, ComponentName>) =>
    component(name, judgeBehaviour(facts, name));
  return {
    payment_capability: component("payment_capability", judgePaymentCapability(facts)),
    scam_resistance: behaviour("scam_resistance"),
    recipient_awareness: behaviour("recipient_awareness"),
    independent_counterparties: component("independent_counterparties", counterparties),
    payments: component("payments", judgePayments(facts, counting(counterparties))),
    active_weeks: component("active_weeks", judgeWeeks(facts)),
    recency: component("recency", judgeRecency(facts)),
    escrow_outcomes: component("escrow_outcomes", escrow),
  };
}

const counting = ({ facts }: Judged<{ readonly counts: boolean }>): number =>
  facts.filter(({ counts }) => counts).length;

const achieved = ({ chain }: ScoreFactsOf<unknown>, components: Components<Found>): Achieved => ({
  behavioural_passes: counting(components.scam_resistance) + counting(components.recipient_awareness),
  independent_counterparties: counting(components.independent_counterparties),
  active_weeks: activeWeeks(chain).length,
});

/** Each page and each transaction once, in the order the facts name them. */
function evidenceOf(facts: readonly Found[], network: string): readonly Evidence[] {
  const urls = facts.flatMap((fact) => ("url" in fact ? [fact.url] : []));
  const transactions = facts.flatMap((fact) => ("tx" in fact ? [fact.tx] : []));
  return [...[...new Set(urls)].map((url) => ({ url })), ...[...new Set(transactions)].map((tx) => ({ network, tx }))];
}
