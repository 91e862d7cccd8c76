import { LRUCache } from "lru-cache";

const REMEMBERED = 1_000;

/** Answers a question that was just asked, or is being asked, with the same answer. Failures are asked again. */
export interface Recent<Value> {
  (question: string, ask: () => Promise<Value>): Promise<Value>;
  /** The answer that it would give without asking; null for none. */
  known(question: string): Promise<Value> | null;
  /** Takes an answer that was found in another way. */
  saw(question: string, answer: Value): void;
}

export function createRecent<Value>(keptMs: number): Recent<Value> {
  const asked = new LRUCache<string, Promise<Value>>({ max: REMEMBERED, ttl: keptMs });
  const known = (question: string) => asked.get(question) ?? null;
  const recent = (question: string, ask: () => Promise<Value>): Promise<Value> => {
    const before = known(question);
    if (before !== null) return before;
    const answer = ask();
    asked.set(question, answer);
    answer.catch(() => {
      if (asked.peek(question) === answer) asked.delete(question);
    });
    return answer;
  };
  const saw = (question: string, answer: Value) => void asked.set(question, Promise.resolve(answer));
  return Object.assign(recent, { known, saw });
}
