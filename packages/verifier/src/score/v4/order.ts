import { inOrder as inOrderOf } from "../v3/order.ts";
import type { ScoreFacts } from "./facts.ts";

/** The same facts in the single order that is scored, hashed and served: as in version 3, and the PASS before the FAIL. */
export const inOrder = ({ seller_exams, ...facts }: ScoreFacts): ScoreFacts => ({
  ...inOrderOf(facts),
  seller_exams: seller_exams.toSorted((a, b) => (a.result > b.result ? -1 : 1)),
});
