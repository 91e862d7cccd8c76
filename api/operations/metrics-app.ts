import { Hono } from "hono";
import type { Backlog } from "../platform/metrics/meter.ts";
import type { Probes } from "./probes.ts";
import { type Sample, samplesOf } from "./series.ts";
import { serviceStatus } from "./status.ts";

export interface MetricsParts {
  /** Those of the service as it is now. */
  readonly probes: () => Probes;
  /** Rejects if the database does not answer. */
  readonly backlog: () => Promise<Backlog>;
  readonly exposition: { readonly contentType: string; expose(samples: readonly Sample[]): Promise<string> };
  readonly now: () => Date;
}

/** The application on the metrics port: `GET /metrics` and nothing else. Concurrent scrapes share one look. */
export function createMetricsApp(parts: MetricsParts): Hono {
  let scrape: Promise<string> | null = null;
  const app = new Hono();
  app.get("/metrics", async (c) => {
    scrape ??= look(parts).finally(() => {
      scrape = null;
    });
    return c.body(await scrape, 200, {
      "content-type": parts.exposition.contentType,
      "cache-control": "no-store",
    });
  });
  return app;
}

/** The status limits how long a part may take to answer; the backlog is requested only if the database answered. */
async function look({ probes, backlog, exposition, now }: MetricsParts): Promise<string> {
  const status = await serviceStatus(probes(), now());
  const waiting = status.database.ok ? await backlog().catch(() => null) : null;
  return exposition.expose(samplesOf(status, waiting));
}
