import { createRequire } from "node:module";
import { OG_FONTS } from "../../../api/certificates/og-image.ts";
import type { Status } from "../../../api/operations/schemas.ts";
import { PASSING, SAMPLE_NOW } from "../certificates/samples.ts";

const require = createRequire(import.meta.url);

export const OG_FONT_FILES: readonly string[] = OG_FONTS.map((font) => require.resolve(font));

const BASE = "eip155:8453";

export const STATUS: Status = {
  ok: true,
  log: {
    ...{ ok: true, state: "integrating", problem: null, size: 1_290, quorum: 1 },
    ...{ witnessed_size: 1_289, witnessed_at: SAMPLE_NOW.toISOString(), witnessed_age_seconds: 0 },
    witnesses: [
      {
        ...{ name: "witness.example/w1", size: 1_289, cosigned_at: SAMPLE_NOW.toISOString() },
        ...{ error: null, error_at: null, danger: null },
      },
      {
        ...{ name: "witness.example/w2", size: null, cosigned_at: null },
        ...{ error: "no answer", error_at: SAMPLE_NOW.toISOString(), danger: null },
      },
    ],
    anchor: { size: 900, state: "final", transaction: null, block: 31_400_000, at: SAMPLE_NOW.toISOString() },
  },
  checked_at: SAMPLE_NOW.toISOString(),
  version: "1.0.0",
  database: { ok: true },
  chains: [
    {
      ...{ network: "eip155:8453", ok: true, block: 31_415_926, finalized_block: 31_415_900, lag_seconds: 2 },
      nodes: [
        { rank: 1, ok: true, block: 31_415_926, lag_seconds: 2 },
        { rank: 2, ok: false, block: null, lag_seconds: null },
      ],
    },
    {
      ...{ network: "eip155:84532", ok: true, block: 2_718_281, finalized_block: 2_718_250, lag_seconds: 3 },
      nodes: [{ rank: 1, ok: true, block: 2_718_281, lag_seconds: 3 }],
    },
  ],
  usdc: [
    { network: "eip155:8453", ok: true, paused: false, receiver_blacklisted: false },
    { network: "eip155:84532", ok: true, paused: null, receiver_blacklisted: null },
  ],
  indexer: { ok: true, ready: true, block: 31_415_925, lag_seconds: 4, reason: null },
  settlement: { ok: true, mode: "in-process", address: PASSING.settlement.payTo, balance_wei: "1234567890123456789" },
  senders: [
    {
      ...{ role: "facilitator", network: BASE, address: PASSING.settlement.payTo, ok: true },
      ...{ balance_wei: "1234567890123456789", cost_wei: "600000000000", unmined: 1, oldest_unmined_seconds: 2 },
    },
  ],
  jobs: [{ name: "resolve", ok: true, runs: 90, failures: 1, last_success_at: SAMPLE_NOW.toISOString() }],
  payments: { oldest_unresolved_seconds: null, unresolved: 0 },
};
