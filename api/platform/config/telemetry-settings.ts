import { z } from "zod";
import { type Environment, readEnvironment } from "./environment.ts";
import { isHttp, whole } from "./values.ts";

/** The data to send to an OpenTelemetry collector. */
export interface TelemetrySettings {
  readonly traces: boolean;
  readonly metrics: boolean;
  /** The share of traces that is kept. */
  readonly sampled: number;
  readonly metricsEveryMs: number;
}

const otlp = z.string().refine(isHttp, "expected the URL of an OTLP/HTTP collector, like http://127.0.0.1:4318");
const exporter = z.enum(["otlp", "none"], { error: "expected otlp or none" });
const SAMPLERS = ["always_on", "always_off", "traceidratio"] as const;
const NAMES = [...SAMPLERS, ...SAMPLERS.map((name) => `parentbased_${name}` as const)] as const;

/** The OpenTelemetry variables that decide what is started; the exporters read the others. */
const TELEMETRY = z.object({
  OTEL_SDK_DISABLED: z.enum(["true", "false"], { error: "expected true or false" }).default("false"),
  OTEL_EXPORTER_OTLP_ENDPOINT: otlp.optional(),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: otlp.optional(),
  OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: otlp.optional(),
  OTEL_EXPORTER_OTLP_PROTOCOL: z.literal("http/json", { error: "expected http/json, the only one here" }).optional(),
  OTEL_TRACES_EXPORTER: exporter.default("otlp"),
  OTEL_METRICS_EXPORTER: exporter.default("otlp"),
  // No trace begins outside this process, so none has a parent.
  OTEL_TRACES_SAMPLER: z.enum(NAMES, { error: `expected ${NAMES.join(", ")}` }).default("parentbased_always_on"),
  OTEL_TRACES_SAMPLER_ARG: z
    .string()
    .refine((text) => Number(text) >= 0 && Number(text) <= 1, "expected a number from 0 to 1")
    .default("1"),
  OTEL_METRIC_EXPORT_INTERVAL: whole(1, 3_600_000).default(60_000),
});

/** Returns null unless a collector is named. */
export function telemetrySettings(environment: Environment): {
  readonly telemetry: TelemetrySettings | null;
  readonly problems: readonly string[];
} {
  const named = Object.fromEntries(Object.entries(environment).filter(([name]) => name.startsWith("OTEL_")));
  const { data, problems } = readEnvironment(TELEMETRY, named);
  if (data === undefined) return { telemetry: null, problems };
  const all = data.OTEL_EXPORTER_OTLP_ENDPOINT;
  const traces = (data.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? all) !== undefined && data.OTEL_TRACES_EXPORTER === "otlp";
  const metrics =
    (data.OTEL_EXPORTER_OTLP_METRICS_ENDPOINT ?? all) !== undefined && data.OTEL_METRICS_EXPORTER === "otlp";
  if (data.OTEL_SDK_DISABLED === "true" || !(traces || metrics)) return { telemetry: null, problems };
  const sampler = data.OTEL_TRACES_SAMPLER.replace("parentbased_", "");
  const sampled = sampler === "traceidratio" ? Number(data.OTEL_TRACES_SAMPLER_ARG) : Number(sampler === "always_on");
  const telemetry = { traces, metrics, sampled, metricsEveryMs: data.OTEL_METRIC_EXPORT_INTERVAL };
  return { telemetry, problems };
}
