import type { Hex } from "viem";

/** The variables that a test's child process inherits: the paths of programs, and their compile cache. */
export const bareEnvironment = (): Record<"PATH" | "NODE_COMPILE_CACHE", string> => ({
  PATH: process.env.PATH ?? "",
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? "",
});

/** Every variable that the API requires on this machine. `key` signs documents. */
export const completeEnvironment = (key: string) => ({
  HOST: "localhost",
  DATABASE_URL: "postgres://api:secret@localhost:5432/trust",
  BASE_RPC_URL: "https://base.example",
  BASE_SEPOLIA_RPC_URL: "https://sepolia.example",
  PAY_TO_ADDRESS: "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
  FACILITATOR_PRIVATE_KEY: `0x${"11".repeat(32)}` as const,
  SIGNING_KEY: key,
  SEALING_KEY: Buffer.alloc(32, 2).toString("base64url"),
  DECOY_SEED: Buffer.alloc(32, 3).toString("base64url"),
  ARBITER_PRIVATE_KEY: `0x${"22".repeat(32)}` as const,
});

/** The arbiter of services and escrows under test. */
export const ARBITER_KEY: Hex = `0x${"a7".repeat(32)}`;

/** The receiving address of the services under test. Its key is unknown. */
export const PAY_TO = "0x00000000000000000000000000000000c0ffee01";
