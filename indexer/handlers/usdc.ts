import { ponder } from "ponder:registry";
import { directTerms, TRANSFER_TOPIC } from "../ledger.ts";
import { takeOver } from "./history.ts";
import { recordTransfer } from "./movements.ts";

type Address = `0x${string}`;

const scope = process.env.INDEX_SCOPE === "authorised" ? "authorised" : "full";
const lower = (address: Address) => address.toLowerCase() as Address;

ponder.on("Usdc:setup", async ({ context }) => {
  const { HISTORY_SCHEMA } = process.env;
  if (HISTORY_SCHEMA) await takeOver(context.db, HISTORY_SCHEMA);
});

if (scope === "authorised") {
  // Not subscribing to Transfer at all is what saves disk and bandwidth.
  ponder.on("Usdc:AuthorizationUsed", async ({ event: { args, block, log, transaction }, context: { client, db } }) => {
    const from = lower(args.authorizer);
    let terms = directTerms({ transaction, usdc: log.address, authorizer: from, nonce: args.nonce });
    if (!terms) {
      const { logs } = await client.getTransactionReceipt({ hash: transaction.hash });
      const next = logs.find(({ logIndex }) => logIndex === log.logIndex + 1);
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
