export const EXAMPLE_WALLETS = ["0x70997970c51812dc3a010c7d01b50e0d17dc79c8"] as const;

/** The members of a score record that callers read first. */
export const exampleRecord = {
  wallet: EXAMPLE_WALLETS[0],
  score: 61,
  tier: "C",
  score_version: 1,
  as_of: "2026-11-25T09:30:00.000Z",
  as_of_block: 38_500_000,
  flags: [],
};
