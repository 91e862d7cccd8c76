/** What a test's child process inherits from this one's environment: where programs are, and their compile cache. */
export const bareEnvironment = (): Record<"PATH" | "NODE_COMPILE_CACHE", string> => ({
  PATH: process.env.PATH ?? "",
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? "",
});

/** Every variable the API requires, with one 32-byte key for all that need one. */
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
