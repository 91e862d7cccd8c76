import { changing, go, type Rule, unless } from "./rules.ts";
import { resultOf } from "./world.ts";

/** Continues as if the settlement had been stored. */
const neverNoted = unless((run, event) =>
  event.type === "notImmediate" && run.settlement !== null
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

/** The rules for the time at which a sale is made and stored. */
export const SALE_RULES: readonly Rule[] = [
  {
    rule: "work with effects on others begins once its settlement is stored",
    world: "noticed",
    breaks: 11,
    without: { off: "settled-before-others-notice" },
  },
  {
    rule: "a delayed sale has its settlement stored",
    world: "noticed",
    breaks: 11,
    without: { step: neverNoted },
  },
  {
    rule: "an immediate sale is stored with its settlement",
    world: "immediate",
    breaks: 4,
    without: { step: withoutSettlement },
  },
  { rule: "a result is answered once it is stored", world: "immediate", breaks: 5, without: { step: toldFirst } },
];
