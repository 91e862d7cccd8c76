/** A paid response, as its buyer got it. */
export interface Answer {
  readonly status: number;
  /** In order; `set-cookie` may appear more than once. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Uint8Array<ArrayBuffer>;
}

/**
 * Stores responses by key. Provide a shared store (Redis, PostgreSQL) if you run several processes, or want responses
 * to survive a restart. Both methods reject if the store cannot be reached.
 */
export interface AnswerStore {
  get(key: string): Promise<Answer | null>;
  /** Stores a response for this number of milliseconds. */
  set(key: string, answer: Answer, keepMs: number): Promise<void>;
}

export interface MemoryLimits {
  readonly answers: number;
  readonly bytes: number;
}

interface Stored {
  readonly answer: Answer;
  /** Milliseconds by the process's own clock. */
  readonly until: number;
}

/** Returns a store in memory. Beyond the limits, the oldest response is dropped first. */
export function memoryAnswers(limits: MemoryLimits = { answers: 10_000, bytes: 64 * 1024 * 1024 }): AnswerStore {
  const stored = new Map<string, Stored>();
  let bytes = 0;
  const drop = (key: string) => {
    bytes -= sizeOf(stored.get(key)?.answer);
    stored.delete(key);
  };
  return {
    async get(key) {
      const found = stored.get(key);
      if (found === undefined) return null;
      if (performance.now() < found.until) return found.answer;
      drop(key);
      return null;
    },
    async set(key, answer, keepMs) {
      drop(key);
      stored.set(key, { answer, until: performance.now() + keepMs });
      bytes += sizeOf(answer);
      for (const oldest of stored.keys()) {
        if (stored.size <= limits.answers && bytes <= limits.bytes) return;
        drop(oldest);
      }
    },
  };
}

const sizeOf = (answer: Answer | undefined): number =>
  answer === undefined
    ? 0
    : answer.headers.reduce((sum, [name, value]) => sum + name.length + value.length, answer.body.length);
