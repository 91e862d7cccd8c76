const REMEMBERED = 1_000;

/** Answers a question that was just asked, or is being asked, with the same answer. Failures are asked again. */
export interface Recent<Value> {
  (question: string, ask: () => Promise<Value>): Promise<Value>;
  /** The answer that it would give without asking; null for none. */
  known(question: string): Promise<Value> | null;
}

export function createRecent<Value>(keptMs: number, now: () => number = Date.now): Recent<Value> {
  const asked = new Map<string, { readonly until: number; readonly answer: Promise<Value> }>();
  const known = (question: string): Promise<Value> | null => {
    const entry = asked.get(question);
    return entry !== undefined && now() < entry.until ? entry.answer : null;
  };
  const recent = (question: string, ask: () => Promise<Value>): Promise<Value> => {
    const before = known(question);
    if (before !== null) return before;
    const entry = { until: now() + keptMs, answer: ask() };
    asked.delete(question);
    asked.set(question, entry);
    entry.answer.catch(() => {
      if (asked.get(question) === entry) asked.delete(question);
    });
    const [oldest] = asked.keys();
    if (asked.size > REMEMBERED && oldest !== undefined) asked.delete(oldest);
    return entry.answer;
  };
  return Object.assign(recent, { known });
}
