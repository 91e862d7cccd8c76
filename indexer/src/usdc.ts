import { type Context, ponder } from "ponder:registry";
import { HISTORY_SCHEMA, SCOPE } from "../environment.ts";
import { directTerms, TRANSFER_TOPIC } from "../ledger.ts";
import { takeOver } from "./history.ts";
import { recordTransfer } from "./movements.ts";

type Address = `0x${string}`;
type Hex = `0x${string}`;

const lower = (address: Address) => address.toLowerCase() as Address;

ponder.on("Usdc:setup", async ({ context }) => {
  if (HISTORY_SCHEMA !== "") await takeOver(context.db);
});

interface Place {
  readonly block: { readonly hash: Hex };
  readonly log: { readonly address: Address; readonly logIndex: number };
  readonly transaction: { readonly hash: Hex };
}

/**
 * The next log. Ponder keeps a receipt for good, also that of a block which a reorganization removed, where logs had other
 * places; then the block itself is asked.
 * @throws if the node does not know the block's logs
 */
async function logAfter(client: Context["client"], { block, log, transaction }: Place) {
  const receipt = await client.getTransactionReceipt({ hash: transaction.hash });
  const isNext = ({ logIndex }: { logIndex: Hex | number | null }) => Number(logIndex) === log.logIndex + 1;
  if (receipt.blockHash === block.hash) return receipt.logs.find(isNext);
  const filter = { blockHash: block.hash, address: log.address };
  const next = (await client.request({ method: "eth_getLogs", params: [filter] })).find(isNext);
  if (next === undefined) throw new Error(`the node has no log after ${log.logIndex} in block ${block.hash}`);
  return next;
}

if (SCOPE === "selective") {
  // Not subscribing to Transfer at all is what saves disk and bandwidth.
  ponder.on("Usdc:AuthorizationUsed", async ({ event: { args, block, log, transaction }, context: { client, db } }) => {
    const from = lower(args.authorizer);
    let terms = directTerms({ transaction, usdc: log.address, authorizer: from, nonce: args.nonce });
    if (!terms) {
      const next = await logAfter(client, { block, log, transaction });
      const payee = next?.topics[2];
      if (next?.topics[0] !== TRANSFER_TOPIC || lower(next.address) !== lower(log.address) || !payee) return;
      terms = { to: `0x${payee.slice(26)}`, value: BigInt(next.data) };
    }
    await recordTransfer(db, {
      ...terms,
      from,
      authorised: true,
      block: block.number,
      timestamp: block.timestamp,
      transaction: transaction.hash,
    });
  });
} else {
  // FiatTokenV2_2 emits AuthorizationUsed and, as the very next log, its Transfer. Ponder commits only whole blocks, so
  // memory suffices.
  let used = { block: "", nextLog: -1 };
  ponder.on("Usdc:AuthorizationUsed", async ({ event: { block, log } }) => {
    used = { block: block.hash, nextLog: log.logIndex + 1 };
  });
  ponder.on("Usdc:Transfer", async ({ event: { args, block, log, transaction }, context: { db } }) => {
    const authorised = used.block === block.hash && used.nextLog === log.logIndex;
    await recordTransfer(db, {
      from: lower(args.from),
      to: lower(args.to),
      value: args.value,
      authorised,
      block: block.number,
      timestamp: block.timestamp,
      transaction: transaction.hash,
    });
  });
}
