import type { Attributes, Span, Tracer } from "@opentelemetry/api";

// Without tracing, a span costs one comparison, and no package is loaded (otel.ts loads them).

/** OpenTelemetry's numbers, copied because its package is loaded only where it is used. */
const KIND = { internal: 0, server: 1, client: 2 } as const;
export const FAILED = 2;

let tracer: Tracer | null = null;

export const traceWith = (to: Tracer | null): void => {
  tracer = to;
};

export const isTraced = (): boolean => tracer !== null;

/** The parts of a span that work may set. */
export type TracedSpan = Pick<Span, "setAttribute" | "updateName" | "setStatus">;

interface Described {
  readonly kind: keyof typeof KIND;
  /** Never data from a client, a signature, or a node's address. */
  readonly attributes?: Attributes;
}

/** Runs the work within its own span, the parent of the spans that it begins. The work gets null without tracing. */
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
      // Messages may quote data from a client.
      span.setAttribute("error.type", error instanceof Error ? error.name : "unknown");
      span.setStatus({ code: FAILED });
      throw error;
    } finally {
      span.end();
    }
  });
}
