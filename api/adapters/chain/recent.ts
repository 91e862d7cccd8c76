const REMEMBERED = 1_000;

/** Answers a question that was just asked, or is being asked, with the same answer. Failures are asked again. */
export function createRecent<Value>(keptMs: number, now: () => number = Date.now) {
  const asked = new Map<string, { readonly until: number; readonly answer: Promise<Value> }>();
  return (question: string, ask: () => Promise<Value>): Promise<Value> => {
    const known = asked.get(question);
    if (known !== undefined && now() < known.until) return known.answer;
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
}
