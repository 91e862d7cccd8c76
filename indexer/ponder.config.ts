import { createConfig } from "ponder";
import { MAIN_NETWORK, NETWORKS } from "../api/kernel/networks.ts";
import { usdcEventsAbi } from "../contracts/abi.ts";
import { blocks, CHAIN, chains, database, escrow } from "./ponder-base.ts";

const { usdc } = NETWORKS[MAIN_NETWORK];

/** Ponder refuses a contract without an address, and derives its events' types from the configuration. */
const withoutEscrow = {} as typeof escrow;

export default createConfig({
  database: database(10),
  chains,
  contracts: {
    Usdc: { chain: CHAIN, abi: usdcEventsAbi, address: usdc.address, startBlock: Number(process.env.START_BLOCK) },
    ...(escrow.Escrow.address.length > 0 ? escrow : withoutEscrow),
  },
  blocks,
});
