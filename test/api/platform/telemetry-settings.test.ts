import { describe, expect, test } from "vitest";
import { parseConfig } from "../../../api/platform/config/config.ts";
import { completeEnvironment } from "../../support/service/environment.ts";

describe("Telemetry settings", () => {
  const GOOD = completeEnvironment("A".repeat(43));
  const parsed = (env: Readonly<Record<string, string>>) => parseConfig({ ...GOOD, ...env });
  const AT = "http://127.0.0.1:4318";

  test("Telemetry is off by default and with OpenTelemetry's standard switches", () => {
    const off = { telemetry: null };
    expect(parsed({})).toMatchObject(off);
    expect(parsed({ OTEL_EXPORTER_OTLP_ENDPOINT: AT, OTEL_SDK_DISABLED: "true" })).toMatchObject(off);
    const none = { OTEL_TRACES_EXPORTER: "none", OTEL_METRICS_EXPORTER: "none" };
    expect(parsed({ OTEL_EXPORTER_OTLP_ENDPOINT: AT, ...none })).toMatchObject(off);
  });

  test.each([
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: AT }, { traces: true, metrics: true, sampled: 1, metricsEveryMs: 60_000 }],
    [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${AT}/v1/traces` }, { traces: true, metrics: false }],
    [
      { OTEL_EXPORTER_OTLP_ENDPOINT: AT, OTEL_TRACES_EXPORTER: "none" },
      { traces: false, metrics: true },
    ],
    [
      { OTEL_EXPORTER_OTLP_ENDPOINT: AT, OTEL_TRACES_SAMPLER: "traceidratio", OTEL_TRACES_SAMPLER_ARG: "0.1" },
      { sampled: 0.1 },
    ],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: AT, OTEL_TRACES_SAMPLER: "parentbased_always_off" }, { sampled: 0 }],
  ])("%j is parsed as the expected settings", (env, telemetry) => {
    expect(parsed(env)).toMatchObject({ telemetry });
  });

  test.each([
    [
      "OTEL_EXPORTER_OTLP_ENDPOINT",
      "collector:4317",
      /^OTEL_EXPORTER_OTLP_ENDPOINT is wrong: expected the URL of an OTLP/,
    ],
    ["OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", /^OTEL_EXPORTER_OTLP_PROTOCOL is wrong: expected http\/json/],
    ["OTEL_TRACES_EXPORTER", "zipkin", /^OTEL_TRACES_EXPORTER is wrong: expected otlp or none$/],
    ["OTEL_TRACES_SAMPLER_ARG", "2", /^OTEL_TRACES_SAMPLER_ARG is wrong: expected a number from 0 to 1$/],
  ])("%s=%s is refused in one line", (name, value, expected) => {
    expect(parsed({ [name]: value })).toMatchObject({ problem: expect.stringMatching(expected) });
  });
});
