import { createConfig } from "ponder";
import { reclaimedEvent } from "../../contracts/commerce-payments.ts";
import { blocks, CHAIN, chains, database, escrow, listOf } from "../ponder-base.ts";

const custodies = listOf(process.env.CUSTODIES);
const custody = {
  Custody: {
    chain: CHAIN,
    abi: [reclaimedEvent],
    address: custodies,
    startBlock: Number(process.env.ESCROW_START_BLOCK),
  },
} as const;
/** Ponder refuses a contract without an address, and derives its events' types from the configuration. */
const withoutCustody = {} as typeof custody;

export default createConfig({
  database: database(5),
  chains,
  contracts: { ...escrow, ...(custodies.length > 0 ? custody : withoutCustody) },
  blocks,
});
