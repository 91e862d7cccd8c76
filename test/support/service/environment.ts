/** What a test's child process has of this one's environment: where programs are, and what of them is compiled already. */
export const bareEnvironment = (): NodeJS.ProcessEnv => ({
  PATH: process.env.PATH,
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
});

/** Every variable that the API cannot do without, with one key of 32 bytes for all that want one. */
export const completeEnvironment = (key: string) => ({
  DATABASE_URL: "postgres://api:secret@localhost:5432/trust",
  BASE_RPC_URL: "https://base.example",
  BASE_SEPOLIA_RPC_URL: "https://sepolia.example",
  PAY_TO_ADDRESS: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
  FACILITATOR_PRIVATE_KEY: `0x${"11".repeat(32)}`,
  SIGNING_KEY: key,
  SEALING_KEY: key,
  DECOY_SEED: key,
  ARBITER_PRIVATE_KEY: `0x${"22".repeat(32)}`,
});
