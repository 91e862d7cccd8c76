import type { Attributes, Span, Tracer } from "@opentelemetry/api";

// A span costs nothing while nobody traces: one comparison, and no package is loaded (otel.ts loads them).

/** OpenTelemetry's numbers: its package is loaded only where it is used. */
const KIND = { internal: 0, server: 1, client: 2 } as const;
export const FAILED = 2;

let tracer: Tracer | null = null;

export const traceWith = (to: Tracer | null): void => {
  tracer = to;
};

export const isTraced = (): boolean => tracer !== null;

/** What work may add to its span. */
export type TracedSpan = Pick<Span, "setAttribute" | "updateName" | "setStatus">;

interface Described {
  readonly kind: keyof typeof KIND;
  /** Never what a client sent, a signature, or a node's address. */
  readonly attributes?: Attributes;
}

/** Runs the work within a span of its own, the parent of those that it begins; it gets null while nobody traces. */
export function traced<T>(
  name: string,
  { kind, attributes = {} }: Described,
  work: (span: TracedSpan | null) => Promise<T>,
): Promise<T> {
  if (tracer === null) return work(null);
  return tracer.startActiveSpan(name, { kind: KIND[kind], attributes }, async (span) => {
    try {
      return await work(span);
    } catch (error) {
      // Messages may quote what a client sent.
      span.setAttribute("error.type", error instanceof Error ? error.name : "unknown");
      span.setStatus({ code: FAILED });
      throw error;
    } finally {
      span.end();
    }
  });
}
