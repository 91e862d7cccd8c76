import { context, DiagLogLevel, diag, type HrTime, ValueType } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { OTLPMetricExporter } from "@opentelemetry/exporter-metrics-otlp-http";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import {
  detectResources,
  envDetector,
  type Resource,
  resourceFromAttributes,
  serviceInstanceIdDetector,
} from "@opentelemetry/resources";
import {
  AggregationTemporality,
  DataPointType,
  MeterProvider,
  type MetricData,
  type MetricProducer,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import { BatchSpanProcessor, TraceIdRatioBasedSampler, TracerProvider } from "@opentelemetry/sdk-trace";
import type { MetricObjectWithValues, MetricValue } from "prom-client";
import { VERSION } from "../about.ts";
import type { TelemetrySettings } from "../config/config.ts";
import { traceWith } from "./tracing.ts";

// The only file that loads OpenTelemetry. It is loaded only if a collector is named.

const NAME = "agent-payment-trust-service";

/** A metric as prom-client reads it. */
export type Collected = MetricObjectWithValues<MetricValue<string>>;

export interface Telemetry {
  /** Also sends the metrics from now on, read anew each time. */
  sendMetrics(read: () => Promise<readonly Collected[]>): void;
  /** Sends all remaining data and stops. */
  stop(): Promise<void>;
}

interface TelemetryParts {
  readonly log: { warn(facts: object, message: string): void };
}

/** Sends traces to the collector given by `OTEL_EXPORTER_OTLP_*`. */
export function startTelemetry(settings: TelemetrySettings, { log }: TelemetryParts): Telemetry {
  const warn = (message: string) => log.warn({}, `telemetry: ${message}`);
  const ignore = () => undefined;
  diag.setLogger({ error: warn, warn, info: ignore, debug: ignore, verbose: ignore }, DiagLogLevel.WARN);
  const detected = detectResources({ detectors: [serviceInstanceIdDetector, envDetector] });
  const resource = resourceFromAttributes({ "service.name": NAME, "service.version": VERSION }).merge(detected);
  const stops: (() => Promise<void>)[] = [];
  if (settings.traces) {
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    const provider = new TracerProvider({
      resource,
      sampler: new TraceIdRatioBasedSampler(settings.sampled),
      spanProcessors: [new BatchSpanProcessor({ exporter: new OTLPTraceExporter() })],
    });
    traceWith(provider.getTracer(NAME, VERSION));
    stops.push(() => provider.shutdown());
  }
  return {
    sendMetrics(read) {
      if (!settings.metrics) return;
      const reader = new PeriodicExportingMetricReader({
        exporter: new OTLPMetricExporter(),
        exportIntervalMillis: settings.metricsEveryMs,
        exportTimeoutMillis: Math.min(settings.metricsEveryMs, EXPORT_WITHIN_MS),
        metricProducers: [producer(resource, read)],
      });
      const provider = new MeterProvider({ resource, readers: [reader] });
      stops.push(() => provider.shutdown());
    },
    stop: async () => void (await Promise.allSettled(stops.map((stop) => stop()))),
  };
}

const EXPORT_WITHIN_MS = 30_000;

/** Exports Prometheus's metrics under the same names. */
function producer(resource: Resource, read: () => Promise<readonly Collected[]>): MetricProducer {
  const startTime = timeOf(Date.now());
  return {
    async collect() {
      const endTime = timeOf(Date.now());
      const metrics = (await read()).flatMap((metric) => converted(metric, { startTime, endTime }));
      return {
        resourceMetrics: { resource, scopeMetrics: [{ scope: { name: NAME, version: VERSION }, metrics }] },
        errors: [],
      };
    },
  };
}

const timeOf = (ms: number): HrTime => [Math.floor(ms / 1_000), (ms % 1_000) * 1_000_000];

interface Times {
  readonly startTime: HrTime;
  readonly endTime: HrTime;
}

function converted(metric: Collected, times: Times): readonly MetricData[] {
  const { name, help: description, type, values } = metric;
  const descriptor = { name, description, unit: name.endsWith("_seconds") ? "s" : "", valueType: ValueType.DOUBLE };
  const shared = { descriptor, aggregationTemporality: AggregationTemporality.CUMULATIVE };
  const points = () =>
    values.map(({ labels: attributes, value }) => ({ ...times, attributes: { ...attributes }, value }));
  // prom-client returns type names, although its own types declare numbers.
  switch (String(type)) {
    case "counter":
      return [{ ...shared, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints: points() }];
    case "gauge":
      return [{ ...shared, dataPointType: DataPointType.GAUGE, dataPoints: points() }];
    case "histogram":
      return [{ ...shared, dataPointType: DataPointType.HISTOGRAM, dataPoints: histogramPoints(metric, times) }];
    default:
      return [];
  }
}

/** Converts histograms, because Prometheus's buckets are cumulative. */
function histogramPoints({ name, values }: Collected, times: Times) {
  const series = Map.groupBy(values, ({ labels: { le: _, ...attributes } }) => JSON.stringify(attributes));
  return [...series].map(([attributes, samples]) => {
    const of = (suffix: string) => samples.filter((sample) => nameOf(sample) === `${name}_${suffix}`);
    const buckets = of("bucket").sort((one, other) => boundOf(one) - boundOf(other));
    const counts = buckets.map(({ value }, at) => value - (buckets[at - 1]?.value ?? 0));
    const boundaries = buckets.map(boundOf).filter(Number.isFinite);
    const [count = 0, sum = 0] = [of("count")[0]?.value, of("sum")[0]?.value];
    return { ...times, attributes: JSON.parse(attributes), value: { buckets: { boundaries, counts }, count, sum } };
  });
}

const nameOf = (sample: MetricValue<string>): string | undefined =>
  "metricName" in sample && typeof sample.metricName === "string" ? sample.metricName : undefined;
const boundOf = ({ labels: { le } }: MetricValue<string>): number =>
  le === "+Inf" ? Number.POSITIVE_INFINITY : Number(le);
