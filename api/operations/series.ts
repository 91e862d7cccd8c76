import type { JobHealth } from "../platform/jobs/job-watch.ts";
import type { Backlog } from "../platform/metrics/meter.ts";
import { MAIN_NETWORK, NETWORKS, type Network } from "../platform/networks.ts";
import type { ChainStatus, SenderStatus, Status } from "./schemas.ts";

/** The series read on each scrape. Every label has few values: parts, networks, states, jobs. */
export const SERIES = {
  trust_build_info: { type: "gauge", help: "Always 1; the version is its label.", labels: ["version"] },
  trust_ok: { type: "gauge", help: "1 while /status reports ok.", labels: [] },
  trust_part_ok: { type: "gauge", help: "1 while this part of /status is ok.", labels: ["part"] },
  trust_observation_age_seconds: {
    type: "gauge",
    help: "Time since a process last observed the chains and senders; no sample after a minute without one.",
    labels: [],
  },
  trust_chain_block: { type: "gauge", help: "The newest block that the node knows.", labels: ["network"] },
  trust_chain_finalized_block: { type: "gauge", help: "The newest final block.", labels: ["network"] },
  trust_chain_lag_seconds: { type: "gauge", help: "Age of the newest block.", labels: ["network"] },
  trust_index_block: { type: "gauge", help: "The last block that the index has read.", labels: [] },
  trust_index_lag_seconds: { type: "gauge", help: "Age of the last block that the index has read.", labels: [] },
  trust_node_ok: {
    type: "gauge",
    help: "0 while a node does not answer or lags; node is its position in the variable, counted from 1.",
    labels: ["network", "node"],
  },
  trust_node_block: { type: "gauge", help: "A node's newest block.", labels: ["network", "node"] },
  trust_sender_balance_eth: { type: "gauge", help: "The balance for gas.", labels: ["role", "network", "address"] },
  trust_sender_cost_eth: {
    type: "gauge",
    help: "The current cost of sending an ordinary payment.",
    labels: ["role", "network", "address"],
  },
  trust_sender_unmined: {
    type: "gauge",
    help: "Transactions sent that are not in a block yet.",
    labels: ["role", "network", "address"],
  },
  trust_sender_oldest_unmined_seconds: {
    type: "gauge",
    help: "Age of the oldest unmined transaction; 0 when there is none.",
    labels: ["role", "network", "address"],
  },
  trust_payments: {
    type: "gauge",
    help: "Unfinished payments of the journal, by state; fulfilled ones until their settlement is final.",
    labels: ["state"],
  },
  trust_payments_parked: {
    type: "gauge",
    help: "Payments parked because they make no progress; in no other series.",
    labels: [],
  },
  trust_payments_oldest_unresolved_seconds: {
    type: "gauge",
    help: "Age of the oldest payment whose outcome is unknown; 0 when there is none.",
    labels: [],
  },
  trust_escrow_tasks: {
    type: "gauge",
    help: "Escrow payments whose outcome is not final on the chain, by state.",
    labels: ["state"],
  },
  trust_kept_signatures: {
    type: "gauge",
    help: "Signatures of orders that are never submitted, stored until they expire.",
    labels: [],
  },
  trust_log_size: { type: "gauge", help: "Entries in the newest checkpoint of the log.", labels: [] },
  trust_log_witnessed_age_seconds: {
    type: "gauge",
    help: "Time since a quorum of witnesses last cosigned the log; no sample before the first.",
    labels: [],
  },
  trust_log_witness_cosigned_timestamp_seconds: {
    type: "gauge",
    help: "Unix time of a witness's newest cosignature.",
    labels: ["witness"],
  },
  trust_log_witness_ok: { type: "gauge", help: "0 while a witness's last answer did not count.", labels: ["witness"] },
  trust_job_ok: { type: "gauge", help: "0 while a job of this process fails or hangs.", labels: ["job"] },
  trust_job_runs_total: { type: "counter", help: "Runs of a job that have ended.", labels: ["job"] },
  trust_job_failures_total: { type: "counter", help: "Runs of a job that failed.", labels: ["job"] },
  trust_job_last_success_timestamp_seconds: {
    type: "gauge",
    help: "Unix time of a job's last success.",
    labels: ["job"],
  },
  trust_job_last_run_seconds: { type: "gauge", help: "Duration of a job's last run.", labels: ["job"] },
} as const satisfies Record<string, { type: "gauge" | "counter"; help: string; labels: readonly string[] }>;

export interface Sample {
  readonly name: keyof typeof SERIES;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** The values that are not part of the status. Null means unknown. */
export interface Sampled {
  readonly backlog: Backlog | null;
  readonly observationSeconds: number | null;
  readonly jobs: readonly JobHealth[];
}

/** Converts a status to samples. Unknown values have none. */
export const samplesOf = (status: Status, { backlog, observationSeconds, jobs }: Sampled): readonly Sample[] => [
  sample("trust_build_info", 1, { version: status.version }),
  sample("trust_ok", Number(status.ok)),
  sample("trust_part_ok", Number(status.database.ok), { part: "database" }),
  sample("trust_part_ok", Number(status.indexer.ok), { part: "indexer" }),
  sample("trust_part_ok", Number(status.settlement.ok), { part: "settlement" }),
  ...known("trust_observation_age_seconds", observationSeconds),
  ...status.chains.flatMap(chainSamples),
  ...status.usdc.flatMap(usdcSamples),
  ...known("trust_index_block", status.indexer.block),
  ...known("trust_index_lag_seconds", status.indexer.lag_seconds),
  ...status.senders.flatMap(senderSamples),
  ...jobs.flatMap(jobSamples),
  ...(status.log === null ? [] : logSamples(status.log)),
  ...(backlog === null ? [] : backlogSamples(backlog, status)),
];

const PAYMENT_STATES = ["received", "settling", "settled", "fulfilled"];

const TASK_STATES = ["open", "mined"];

const sample = (name: Sample["name"], value: number, labels: Sample["labels"] = {}): Sample => ({
  name,
  labels,
  value,
});

const known = (name: Sample["name"], value: number | null, labels: Sample["labels"] = {}): readonly Sample[] =>
  value === null ? [] : [sample(name, value, labels)];

const keyOf = (network: Network) => NETWORKS[network].key;

function chainSamples({ network: id, ok, block, finalized_block, lag_seconds, nodes }: ChainStatus) {
  const network = keyOf(id);
  return [
    sample("trust_part_ok", Number(ok), { part: `chain ${network}` }),
    ...known("trust_chain_block", block, { network }),
    ...known("trust_chain_finalized_block", finalized_block, { network }),
    ...known("trust_chain_lag_seconds", lag_seconds, { network }),
    ...nodes.flatMap(({ rank, ...node }) => [
      sample("trust_node_ok", Number(node.ok), { network, node: String(rank) }),
      ...known("trust_node_block", node.block, { network, node: String(rank) }),
    ]),
  ];
}

/** The main network's label is just `usdc`, like the other parts that the service requires. */
const usdcSamples = ({ network, ok, paused }: Status["usdc"][number]) =>
  known("trust_part_ok", paused === null ? null : Number(ok), {
    part: network === MAIN_NETWORK ? "usdc" : `usdc ${keyOf(network)}`,
  });

const ethOf = (wei: string | null): number | null => (wei === null ? null : Number(wei) / 1e18);

function senderSamples({ role, network, address, ...sender }: SenderStatus) {
  const labels = { role, network: keyOf(network), address };
  return [
    sample("trust_part_ok", Number(sender.ok), { part: `${role} ${labels.network}` }),
    ...known("trust_sender_balance_eth", ethOf(sender.balance_wei), labels),
    ...known("trust_sender_cost_eth", ethOf(sender.cost_wei), labels),
    ...known("trust_sender_unmined", sender.unmined, labels),
    ...known(
      "trust_sender_oldest_unmined_seconds",
      sender.unmined === null ? null : (sender.oldest_unmined_seconds ?? 0),
      labels,
    ),
  ];
}

function jobSamples({ name: job, ok, runs, failures, lastSuccessAt, lastSeconds }: JobHealth) {
  return [
    sample("trust_job_ok", Number(ok), { job }),
    sample("trust_job_runs_total", runs, { job }),
    sample("trust_job_failures_total", failures, { job }),
    ...known("trust_job_last_success_timestamp_seconds", lastSuccessAt && lastSuccessAt.getTime() / 1000, { job }),
    ...known("trust_job_last_run_seconds", lastSeconds, { job }),
  ];
}

const logSamples = ({ ok, size, witnessed_age_seconds, witnesses }: NonNullable<Status["log"]>) => [
  sample("trust_part_ok", Number(ok), { part: "log" }),
  sample("trust_log_size", size),
  ...known("trust_log_witnessed_age_seconds", witnessed_age_seconds),
  ...witnesses.flatMap(({ name: witness, cosigned_at, error }) => [
    sample("trust_log_witness_ok", Number(error === null), { witness }),
    ...known(
      "trust_log_witness_cosigned_timestamp_seconds",
      cosigned_at === null ? null : Date.parse(cosigned_at) / 1000,
      {
        witness,
      },
    ),
  ]),
];

const backlogSamples = ({ payments, parkedPayments, escrowTasks, withheldSignatures }: Backlog, status: Status) => [
  ...PAYMENT_STATES.map((state) => sample("trust_payments", payments[state] ?? 0, { state })),
  sample("trust_payments_parked", parkedPayments),
  sample("trust_payments_oldest_unresolved_seconds", status.payments.oldest_unresolved_seconds ?? 0),
  ...TASK_STATES.map((state) => sample("trust_escrow_tasks", escrowTasks[state] ?? 0, { state })),
  sample("trust_kept_signatures", withheldSignatures),
];
