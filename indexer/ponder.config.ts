import type { ClientBase } from "pg";
import { createConfig } from "ponder";
import { MAIN_NETWORK, NETWORKS } from "../api/platform/networks.ts";
import { escrowEventsAbi, usdcEventsAbi } from "../contracts/abi.ts";
import { reclaimedEvent } from "../contracts/commerce-payments.ts";
import { CUSTODIES, ESCROW_START_BLOCK, ESCROWS, listOf, SCHEMA, START_BLOCK } from "./environment.ts";
import { IS_HELD, sessionName, writerName } from "./index-lock.ts";

/** Undefined if Ponder was started without the launcher. */
const holder = process.env.INDEX_HOLDER;
/** Exits with Ponder's code for a temporary failure. Uncommitted work is lost, and Ponder recovers from that. */
const end = () => process.exit(75);

/** Ends this process when the launcher ends, because the kernel then closes the channel between them. */
function endWithLauncher(): void {
  if (process.channel === undefined) return;
  process.once("disconnect", end);
  if (!process.connected) end();
}

/**
 * Names each of Ponder's connections, so that the index's next holder can end it, and accepts it only while the launcher's
 * session holds the lock. A Ponder that was suspended and resumes therefore cannot write. Losing a connection ends the
 * process, because Ponder retries a lost backfill transaction in a way that deadlocks with itself. A transaction that is
 * idle for five minutes also ends it. The statement timeout is set here, not by Ponder (ponder-process.ts).
 */
async function belongTo(holder: string, client: ClientBase): Promise<void> {
  client.once("error", end);
  await client.query(
    `select set_config('application_name', $1, false), set_config('statement_timeout', '10min', false),
      set_config('idle_in_transaction_session_timeout', '5min', false)`,
    [writerName(SCHEMA, holder)],
  );
  const { rowCount } = await client.query(IS_HELD, [sessionName(holder)]);
  if (rowCount === 0) end();
}

const onConnect = holder === undefined ? {} : { onConnect: (client: ClientBase) => belongTo(holder, client) };

endWithLauncher();

const { chainId, usdc } = NETWORKS[MAIN_NETWORK];
/** Ponder stores this name in its tables. */
const CHAIN = "base";
const { PONDER_RPC_URL_8453: rpc, PONDER_WS_URL_8453: ws, POLL_MS } = process.env;

const fromFirstEscrow = { chain: CHAIN, startBlock: ESCROW_START_BLOCK } as const;
const escrow = { Escrow: { ...fromFirstEscrow, abi: escrowEventsAbi, address: [...ESCROWS] } } as const;
const custody = { Custody: { ...fromFirstEscrow, abi: [reclaimedEvent], address: [...CUSTODIES] } } as const;
// Ponder rejects a contract without an address, and derives the event types from the configuration.
const none = {} as typeof escrow & typeof custody;

export default createConfig({
  database: { kind: "postgres", poolConfig: { max: 10, ...onConnect } },
  chains: {
    [CHAIN]: {
      id: chainId,
      rpc: [...listOf(rpc)],
      ...(ws ? { ws } : {}),
      pollingInterval: Number(POLL_MS || 1000),
    },
  },
  contracts: {
    Usdc: { chain: CHAIN, abi: usdcEventsAbi, address: usdc.address, startBlock: START_BLOCK },
    ...(ESCROWS.length > 0 ? escrow : none),
    ...(CUSTODIES.length > 0 ? custody : none),
  },
  // Starts at the newest block, so that older blocks are not fetched for it.
  blocks: { Head: { chain: CHAIN, interval: 1, startBlock: "latest" } },
});
