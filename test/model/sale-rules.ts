import { changing, go, type Rule, unless } from "./rules.ts";
import { resultOf } from "./world.ts";

/** As though it had been stored. */
const neverNoted = unless((run, event) =>
  event.type === "notAtOnce" && run.settlement !== null
    ? go({ ...run, noted: true }, { type: "handle", settlement: run.settlement, noted: true })
    : null,
);

const withoutSettlement = changing((decision) =>
  decision.command.type === "complete" ? go(decision.run, { type: "complete", settlement: null }) : decision,
);

const toldFirst = unless((run, event) =>
  event.type === "handled" && !run.job
    ? go(run, {
        type: "answer",
        answer: { type: "result", response: resultOf("r1"), settlement: run.settlement, replay: false },
      })
    : null,
);

/** The rules for when a sale is made and stored. */
export const SALE_RULES: readonly Rule[] = [
  {
    rule: "work that others notice begins once its settlement is stored",
    world: "noticed",
    breaks: 11,
    without: { off: "settled-before-others-notice" },
  },
  {
    rule: "a sale that is not made at once has its settlement stored",
    world: "noticed",
    breaks: 11,
    without: { step: neverNoted },
  },
  {
    rule: "a sale made at once is stored with its settlement",
    world: "atOnce",
    breaks: 4,
    without: { step: withoutSettlement },
  },
  { rule: "a result is told once it is stored", world: "atOnce", breaks: 5, without: { step: toldFirst } },
];
