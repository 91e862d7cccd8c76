import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { createMeter } from "../../../api/operations/prometheus.ts";
import { samplesOf } from "../../../api/operations/series.ts";
import { STATUS } from "../../support/browser/sample-pages.ts";

const read = (path: string): string => readFileSync(new URL(`../../../${path}`, import.meta.url), "utf8");

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string };
}

const RULES = parse(read("deploy/alerts.yaml")).groups.flatMap(
  ({ rules }: { rules: readonly Rule[] }) => rules,
) as Rule[];
const TESTS = parse(read("deploy/alerts.test.yaml")).tests as readonly {
  readonly alert_rule_test: readonly { readonly alertname: string; readonly exp_alerts?: readonly unknown[] }[];
}[];
const PANELS = JSON.parse(read("deploy/dashboard.json")).panels as readonly {
  readonly targets: readonly { readonly expr: string }[];
}[];
const EXPRESSIONS = [
  ...RULES.map(({ expr }) => expr),
  ...PANELS.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
];

const BACKLOG = { payments: {}, parkedPayments: 0, escrowTasks: {}, withheldSignatures: 0 };
const JOB = { name: "resolve", ok: true, runs: 9, failures: 1, lastSuccessAt: new Date(), lastSeconds: 0.02 };
const SAMPLES = samplesOf(STATUS, { backlog: BACKLOG, observationSeconds: 1, jobs: [JOB] });
const exposed = await createMeter().expose(SAMPLES);
/** The names of all exposed metrics. A histogram's series share its name. */
const METRICS = new Set([...exposed.matchAll(/^# TYPE (\S+) /gm)].map(([, name = ""]) => name));

test("The rules, the dashboard, and the metrics are not empty", () => {
  expect(RULES.length).toBeGreaterThan(20);
  expect(PANELS.length).toBeGreaterThan(15);
  expect(METRICS.size).toBeGreaterThan(50);
});

test("Every metric in the alerts and the dashboard is exposed by /metrics", () => {
  const used = EXPRESSIONS.flatMap((expr) => expr.match(/\b(?:trust|nodejs|process)_[a-z0-9_]+/g) ?? []);
  const unknown = used.filter((name) => !METRICS.has(name) && !METRICS.has(name.replace(/_(bucket|sum|count)$/, "")));
  expect([...new Set(unknown)]).toEqual([]);
});

test("Every part, state, and network in an alert occurs in the samples", () => {
  const values = (label: string) => new Set(SAMPLES.flatMap(({ labels }) => labels[label] ?? []));
  for (const label of ["part", "state", "network"])
    for (const { alert, expr } of RULES)
      for (const [, value] of expr.matchAll(new RegExp(`\\b${label}="([^"]+)"`, "g")))
        expect([...values(label)], alert).toContain(value);
});

describe.each(RULES)("$alert", ({ alert, labels, annotations }) => {
  test("$alert has a runbook section, a severity, a summary, and tests in which it fires and does not fire", () => {
    expect(read("docs/runbook.md")).toMatch(new RegExp(`^## ${alert}\\n\\n\\S`, "m"));
    expect(["page", "ticket"]).toContain(labels.severity);
    expect(annotations.summary).toMatch(/^\S.{10,}/);
    const tests = TESTS.flatMap((one) => one.alert_rule_test).filter(({ alertname }) => alertname === alert);
    expect(tests.some(({ exp_alerts }) => exp_alerts !== undefined)).toBe(true);
    expect(tests.some(({ exp_alerts }) => exp_alerts === undefined)).toBe(true);
  });
});

test("The runbook's sections are exactly the alerts", () => {
  const sections = [...read("docs/runbook.md").matchAll(/^## (.+)$/gm)].map(([, name]) => name);
  expect(sections).toEqual(RULES.map(({ alert }) => alert));
});
