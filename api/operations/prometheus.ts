import PQueue from "p-queue";
import {
  Counter,
  collectDefaultMetrics,
  Gauge,
  Histogram,
  type MetricObjectWithValues,
  type MetricValue,
  Registry,
} from "prom-client";
import type { Meter } from "../platform/metrics/meter.ts";
import { NETWORKS } from "../platform/networks.ts";
import { type Sample, SERIES } from "./series.ts";

/** The methods of the route table and their companions. Any other method from a client shares one label value. */
const METHODS = new Set(["GET", "HEAD", "POST", "OPTIONS"]);
const REQUEST_BUCKETS = [0.005, 0.02, 0.1, 0.5, 2, 10, 30];
const BATCH_BUCKETS = [2, 5, 10, 25, 50, 100];
const WAIT_BUCKETS = [0.01, 0.05, 0.1, 0.2, 0.5, 1, 2, 5];
const SETTLEMENT_BUCKETS = [0.25, 0.5, 1, 2, 4, 8, 15, 30, 60, 120, 300];

export interface PrometheusMeter extends Meter {
  readonly contentType: string;
  /**
   * Returns everything as Prometheus text: the counters, the process, and these samples in place of the previous ones.
   */
  expose(samples: readonly Sample[]): Promise<string>;
  /** Returns the same as values. */
  collect(samples: readonly Sample[]): Promise<readonly Collected[]>;
}

/** A metric and its current values. */
type Collected = MetricObjectWithValues<MetricValue<string>>;

/** Creates the counters of this process, in their own registry. */
export function createMeter(): PrometheusMeter {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  const requests = new Histogram({
    name: "trust_http_request_duration_seconds",
    help: "Requests by route pattern and status class; none is a path without a route, refused one that came too large or too often.",
    labelNames: ["method", "route", "status"],
    buckets: REQUEST_BUCKETS,
    registers,
  });
  const settlements = new Histogram({
    name: "trust_settlement_duration_seconds",
    help: "From handing a payment to the facilitator until this service sees it on the chain.",
    labelNames: ["network"],
    buckets: SETTLEMENT_BUCKETS,
    registers,
  });
  const batches = new Histogram({
    name: "trust_batch_payments",
    help: "Payments in one transaction, where they share it.",
    labelNames: ["network"],
    buckets: BATCH_BUCKETS,
    registers,
  });
  const batchWaits = new Histogram({
    name: "trust_batch_wait_seconds",
    help: "How long the first payment of a batch waited for others.",
    labelNames: ["network"],
    buckets: WAIT_BUCKETS,
    registers,
  });
  const outcomes = new Histogram({
    name: "trust_outcome_batch_size",
    help: "Escrow outcomes that one mined transaction has carried out, where they share it.",
    labelNames: ["network"],
    buckets: BATCH_BUCKETS,
    registers,
  });
  const batching = new Gauge({
    name: "trust_batching_on",
    help: "1 while payments may share transactions.",
    labelNames: ["network"],
    registers,
  });
  const counter = <Label extends string>(name: string, help: string, labelNames: readonly Label[]) =>
    new Counter({ name, help, labelNames, registers });
  const payments = counter("trust_payment_transitions_total", "Payments that entered a state.", ["state", "reason"]);
  const certificates = counter("trust_certificates_total", "Certificates written.", ["product", "result"]);
  const verdicts = counter("trust_verdicts_total", "Verdicts sold.", ["category", "outcome"]);
  const skipped = counter("trust_batch_skipped_payments_total", "Payments taken over while they waited.", ["network"]);
  const lanes = ["network", "lane"] as const;
  const relayed = counter("trust_relayed_payments_total", "Payments that were mined, alone or in a batch.", lanes);
  const failures = counter("trust_relayed_failed_payments_total", "Those that did not settle.", lanes);
  const gas = counter("trust_relayed_gas_total", "The gas of their transactions.", lanes);
  const fees = counter(
    "trust_relayed_fee_eth_total",
    "The cost of these transactions, including data on a parent chain.",
    lanes,
  );
  const replacements = counter("trust_relayed_replacements_total", "Stuck ones replaced at higher fees.", ["network"]);
  const turnedAway = counter("trust_turned_away_payments_total", "Payments that were not sent.", [
    "network",
    "because",
  ]);
  const outcomeGas = counter("trust_outcome_batch_gas_total", "Gas of these transactions.", ["network"]);
  const series = createSeries(registers);
  // While one call reads the series, another one must not replace them.
  const turns = new PQueue({ concurrency: 1 });
  return {
    request: ({ method, route, status, seconds }) =>
      requests.observe(
        { method: METHODS.has(method) ? method : "other", route, status: `${Math.floor(status / 100)}xx` },
        seconds,
      ),
    payment: (state, reason) => payments.inc({ state, reason }),
    settled: (network, seconds) => settlements.observe({ network: NETWORKS[network].key }, seconds),
    batch(network, sent) {
      const labels = { network: NETWORKS[network].key };
      skipped.inc(labels, sent.skipped);
      if (sent.payments === 0) return;
      batches.observe(labels, sent.payments);
      batchWaits.observe(labels, sent.waitedSeconds);
    },
    relayed(network, mined) {
      const labels = { network: NETWORKS[network].key, lane: mined.payments > 1 ? "batch" : "alone" };
      relayed.inc(labels, mined.payments);
      failures.inc(labels, mined.failed);
      gas.inc(labels, Number(mined.gas));
      fees.inc(labels, Number(mined.feeWei) / 1e18);
    },
    replaced: (network) => replacements.inc({ network: NETWORKS[network].key }),
    turnedAway: (network, because) => turnedAway.inc({ network: NETWORKS[network].key, because }),
    batching: (network, isOn) => batching.set({ network: NETWORKS[network].key }, Number(isOn)),
    outcomes(network, { served, gas }) {
      const labels = { network: NETWORKS[network].key };
      outcomes.observe(labels, served);
      outcomeGas.inc(labels, Number(gas));
    },
    certificate: (product, result) => certificates.inc({ product, result }),
    verdict: (category, outcome) => verdicts.inc({ category, outcome }),
    contentType: registry.contentType,
    expose: (samples) => turns.add(() => fill(samples).metrics()),
    collect: (samples) => turns.add(() => fill(samples).getMetricsAsJSON()),
  };

  function fill(samples: readonly Sample[]): Registry {
    for (const [name, { labels }] of Object.entries(SERIES) as [Sample["name"], { labels: readonly string[] }][]) {
      series[name].reset();
      // The library sets unlabeled metrics to 0, but without an answer, the index's lag is unknown, not 0.
      if (labels.length === 0) series[name].remove();
    }
    // Right after a reset, adding sets the value of both gauges and counters.
    for (const { name, labels, value } of samples) series[name].inc(labels, value);
    return registry;
  }
}

type Series = Record<Sample["name"], Pick<Gauge, "reset" | "remove" | "inc">>;

function createSeries(registers: Registry[]): Series {
  const made = Object.entries(SERIES).map(([name, { type, help, labels }]) => {
    const settings = { name, help, labelNames: [...labels] as string[], registers };
    return [name, type === "gauge" ? new Gauge(settings) : new Counter(settings)] as const;
  });
  return Object.fromEntries(made) as unknown as Series;
}
