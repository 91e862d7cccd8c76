import { ledgerOn } from "../../../packages/seller-check/src/chain-ledger.ts";
import { NETWORKS } from "../../kernel/networks.ts";
import type { Address, Hex } from "../../kernel/wallet.ts";
import type { ExamLedger } from "../../seller-exam/ports.ts";
import { EXAM_NETWORK } from "../../seller-exam/products.ts";
import type { ChainReader } from "./chain-reader.ts";
import { readSettlements, takenBy } from "./exam-settlements.ts";
import { discreet } from "./rpc-errors.ts";

/** What our own node says that cannot be: the exam is no fact about the seller then. */
class NodeFault extends Error {}

const LOOKS = 20;
const PAUSE_MS = 500;
/** A head that has not moved for this long, and is as old by our clock, is none. */
const STANDS_STILL_SECONDS = 60;

/** The chain as exams read it, by a node that may lag or have holes. */
export function createExamLedger(
  { client, funds }: Pick<ChainReader, "client" | "funds">,
  { payer, sleep }: { readonly payer: Address; readonly sleep: (ms: number) => Promise<void> },
): ExamLedger {
  const ledger = ledgerOn(client, NETWORKS[EXAM_NETWORK].chainId);
  const used = discreet(async (nonces: readonly Hex[]): Promise<ReadonlySet<Hex>> => {
    const { unused } = await funds(payer, nonces);
    return new Set(nonces.filter((nonce) => !unused.includes(nonce)));
  });
  const settlements = readSettlements({ client, ledger, payer });
  return {
    network: ledger.network,
    now: discreet(ledger.now),
    block: discreet(ledger.block),
    used,
    spent: discreet(async (given) => {
      await refuseStandstill(client, given.since);
      return ledger.spent(given);
    }),
    settlements: discreet(async (given) => {
      for (let look = 1; ; look++) {
        const found = await settlements(given);
        if (takenBy(found) >= given.spent) return found;
        if (look === LOOKS) throw new NodeFault("the node has shown what the exam spent, and no longer shows it");
        await sleep(PAUSE_MS);
      }
    }),
    settlement: discreet(async (given) => {
      for (let look = 1; ; look++) {
        const found = await ledger.settlement(given);
        if (found !== null || !(await used([given.nonce])).has(given.nonce)) return found;
        if (look === LOOKS) throw new NodeFault("the node knows that an authorization is used, and shows no log of it");
        await sleep(PAUSE_MS);
      }
    }),
  };
}

/** A chain that stands still shows no settlement, whatever the seller did. */
async function refuseStandstill(client: ChainReader["client"], since: bigint): Promise<void> {
  const { number, timestamp } = await client.getBlock();
  const age = Math.floor(Date.now() / 1000) - Number(timestamp);
  if (number === since && age > STANDS_STILL_SECONDS)
    throw new NodeFault("the node's chain has not moved during the exam");
}
