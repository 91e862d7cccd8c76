import { text } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { forFile } from "../../support/for-file.ts";
import { serveHttp } from "../../support/http-server.ts";
import { post, v2 } from "../../support/payments/requests.ts";
import { newPayer, signPayment } from "../../support/payments/signing.ts";
import { startApiStage } from "../../support/service/api-process.ts";

interface Attribute {
  readonly key: string;
  readonly value: { readonly stringValue?: string; readonly intValue?: number };
}

interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly attributes: readonly Attribute[];
}

interface Metric {
  readonly name: string;
  readonly sum?: { readonly isMonotonic: boolean; readonly dataPoints: readonly { readonly asDouble: number }[] };
  readonly gauge?: { readonly dataPoints: readonly object[] };
  readonly histogram?: { readonly dataPoints: readonly { readonly count: number; readonly bucketCounts: number[] }[] };
}

/** Starts a collector for OTLP over HTTP as JSON (opentelemetry.io/docs/specs/otlp). */
async function startCollector() {
  const [spans, metrics, texts]: [Span[], Map<string, Metric>, string[]] = [[], new Map(), []];
  const services = new Set<string | undefined>();
  const server = await serveHttp(async (request, answer) => {
    const body = await text(request);
    texts.push(body, JSON.stringify(request.headers));
    const { resourceSpans = [], resourceMetrics = [] } = JSON.parse(body);
    for (const { resource, scopeSpans = [], scopeMetrics = [] } of [...resourceSpans, ...resourceMetrics]) {
      services.add(textOf(resource.attributes, "service.name"));
      for (const scope of scopeSpans) spans.push(...scope.spans);
      for (const scope of scopeMetrics) for (const metric of scope.metrics) metrics.set(metric.name, metric);
    }
    answer.setHeader("content-type", "application/json").end("{}");
  });
  return { ...server, spans, metrics, services, texts };
}

const textOf = (attributes: readonly Attribute[], key: string) =>
  attributes.find((one) => one.key === key)?.value.stringValue;

describe("Telemetry", async () => {
  const collector = await forFile(startCollector());
  const { chain, start } = await forFile(startApiStage());
  const api = await start(
    { url: chain.rpcUrl },
    {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_SERVICE_NAME: "trust-under-test",
      OTEL_METRIC_EXPORT_INTERVAL: "1000",
    },
  );
  const signed = await signPayment(await newPayer(chain));
  expect((await post(`${api.url}/test/basic?junk=1`, v2(signed))).status).toBe(200);

  test("A request has a span with child spans for its RPC calls and SQL", async () => {
    const found = () => collector.spans.find(({ name }) => name === "POST /test/basic");
    await expect.poll(found, { timeout: 30_000 }).toBeDefined();
    const request = found() as Span;
    expect(request).toMatchObject({ kind: 2 });
    expect(request.parentSpanId ?? "").toBe("");
    expect(request.attributes).toContainEqual({ key: "http.response.status_code", value: { intValue: 200 } });
    expect(textOf(request.attributes, "http.route")).toBe("/test/basic");
    const within = collector.spans.filter(({ traceId }) => traceId === request.traceId);
    const ids = new Set(within.map(({ spanId }) => spanId));
    for (const { parentSpanId, spanId } of within) if (spanId !== request.spanId) expect(ids).toContain(parentSpanId);
    const rpc = within.flatMap(({ attributes }) => textOf(attributes, "rpc.method") ?? []);
    expect(rpc.some((method) => method.includes("eth_call"))).toBe(true);
    const sql = within.flatMap(({ attributes }) => textOf(attributes, "db.query.text") ?? []);
    expect(sql.some((statement) => statement.includes("payment"))).toBe(true);
    expect(collector.services).toEqual(new Set(["trust-under-test"]));
  });

  test("The metrics of /metrics are exported without a metrics port", async () => {
    const requests = () => collector.metrics.get("trust_http_request_duration_seconds")?.histogram?.dataPoints ?? [];
    await expect.poll(requests, { timeout: 30_000 }).not.toEqual([]);
    for (const { count, bucketCounts } of requests())
      expect(bucketCounts.reduce((sum, one) => sum + one, 0)).toBe(count);
    expect(collector.metrics.get("trust_payment_transitions_total")?.sum?.isMonotonic).toBe(true);
    const balance = () => collector.metrics.get("trust_sender_balance_eth")?.gauge?.dataPoints ?? [];
    await expect.poll(balance, { timeout: 30_000 }).not.toEqual([]);
  });

  test("Telemetry never contains a signature, a payment header, or client input", () => {
    const digits = signed.signature.slice(2);
    const secrets = [digits.slice(0, 64), digits.slice(64, 128), "6f".repeat(32), "junk", ...Object.values(v2(signed))];
    for (const one of collector.texts) for (const secret of secrets) expect(one).not.toContain(secret);
  });
});
