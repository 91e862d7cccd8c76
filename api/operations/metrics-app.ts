import { Hono } from "hono";
import { late } from "../platform/clock.ts";
import type { Backlog } from "../platform/metrics/meter.ts";
import type { Observed } from "./observation-store.ts";
import type { Probes } from "./probes.ts";
import { type Sample, samplesOf } from "./series.ts";
import { PATIENCE_MS, serviceStatus } from "./status.ts";

export interface SampleParts {
  /** Returns the current service's probes. */
  readonly probes: () => Probes;
  /** Returns the last observation of the chains. Both reject if the database does not answer. */
  readonly observed: () => Promise<Observed | null>;
  readonly backlog: () => Promise<Backlog>;
  readonly now: () => Date;
}

/**
 * Creates the application on the metrics port, which only serves `GET /metrics`. Concurrent scrapes share one sample.
 */
export function createMetricsApp(contentType: string, expose: () => Promise<string>): Hono {
  let scrape: Promise<string> | null = null;
  const app = new Hono();
  app.get("/metrics", async (c) => {
    scrape ??= expose().finally(() => {
      scrape = null;
    });
    return c.body(await scrape, 200, { "content-type": contentType, "cache-control": "no-store" });
  });
  return app;
}

/**
 * Samples only the database, because the limit on its part of the status bounds the time. The backlog is read only if
 * the database answered.
 */
export const createSampling =
  ({ probes, observed, backlog, now }: SampleParts) =>
  async (): Promise<readonly Sample[]> => {
    const last = Promise.race([observed().catch(() => null), late(PATIENCE_MS)]);
    const facts = last.then((one) => one?.facts ?? null);
    const status = await serviceStatus(probes(), now(), facts);
    const isThere = status.database.ok;
    const [waiting, age] = isThere
      ? await Promise.all([backlog().catch(() => null), last.then((one) => one?.ageSeconds ?? null)])
      : [null, null];
    return samplesOf(status, { backlog: waiting, observationSeconds: age, jobs: probes().jobs() });
  };
