import type { Address, Hex } from "viem";
import { NETWORKS } from "../../../api/kernel/networks.ts";
import { withClient } from "../../../scripts/embedded/postgres.ts";
import { USDC_ABI } from "../../../scripts/embedded/usdc.ts";
import type { Installation } from "../service/installation.ts";

const { usdc } = NETWORKS["eip155:8453"];

/** A payment by authorization as the current chain's logs show it. */
export interface ChainPayment {
  readonly from: Address;
  readonly to: Address;
  readonly nonce: Hex;
  readonly transaction: Hex;
  readonly block: number;
}

/** A payment in the journal, with the number of certificates it backs. */
export interface JournalRow {
  readonly nonce: Hex;
  readonly state: string;
  readonly reason: string | null;
  readonly isFinal: boolean;
  readonly transaction: Hex | null;
  readonly block: number | null;
  readonly response: string | null;
  readonly certificates: number;
}

/** Everything the chain shows, recounted without the service's own reader or index. */
export async function paymentsOnChain({ chain }: Pick<Installation, "chain">): Promise<readonly ChainPayment[]> {
  const range = { address: usdc.address, fromBlock: 0n } as const;
  const [used, transfers] = await Promise.all([
    chain.getContractEvents({ ...range, abi: USDC_ABI, eventName: "AuthorizationUsed" }),
    chain.getContractEvents({ ...range, abi: USDC_ABI, eventName: "Transfer" }),
  ]);
  const place = (blockHash: Hex, logIndex: number) => `${blockHash} ${logIndex}`;
  const byPlace = new Map(transfers.map((log) => [place(log.blockHash, log.logIndex), log]));
  return used.flatMap(({ args, blockHash, blockNumber, logIndex, transactionHash }) => {
    const { from, to } = byPlace.get(place(blockHash, logIndex + 1))?.args ?? {};
    const { nonce } = args;
    if (from === undefined || to === undefined || nonce === undefined || from !== args.authorizer) return [];
    return [{ from, to, nonce, transaction: transactionHash, block: Number(blockNumber) }];
  });
}

const JOURNAL = `SELECT nonce, state, reason, final_at IS NOT NULL AS is_final, tx, block_number, convert_from(response, 'UTF8') AS response,
    (SELECT count(*)::int FROM certificate WHERE (certificate.wallet, certificate.nonce) = (payment.payer, payment.nonce)) AS certificates
  FROM payment`;

export async function readJournal(installation: Installation): Promise<readonly JournalRow[]> {
  const { rows } = await withClient(installation.ownerUrl(), (client) => client.query(JOURNAL));
  const hex = (bytes: Buffer | null) => (bytes === null ? null : (`0x${bytes.toString("hex")}` as const));
  return rows.map((row) => ({
    nonce: hex(row.nonce) as Hex,
    state: row.state,
    reason: row.reason,
    isFinal: row.is_final,
    transaction: hex(row.tx),
    block: row.block_number === null ? null : Number(row.block_number),
    response: row.response,
    certificates: row.certificates,
  }));
}

/** Where the journal and the current chain disagree about payments to the service; empty if they agree. */
export async function disagreements(installation: Installation): Promise<readonly string[]> {
  const [payments, rows] = await Promise.all([paymentsOnChain(installation), readJournal(installation)]);
  const payTo = installation.payTo();
  const settled = payments.filter(({ to }) => to === payTo);
  const fulfilled = rows.filter(({ state }) => state === "fulfilled");
  const found = (row: JournalRow) =>
    settled.filter((one) => one.nonce === row.nonce && one.transaction === row.transaction && one.block === row.block);
  return [
    ...fulfilled
      .filter((row) => found(row).length !== 1)
      .map(({ nonce, block }) => `fulfilled, but not settled once where the journal says (block ${block}): ${nonce}`),
    ...settled
      .filter(({ nonce }) => fulfilled.filter((row) => row.nonce === nonce).length !== 1)
      .map(({ nonce, block }) => `settled in block ${block}, but not fulfilled: ${nonce}`),
    ...rows
      .filter(
        ({ state, reason, certificates }) => certificates !== (state === "fulfilled" || reason === "reversed" ? 1 : 0),
      )
      .map(({ nonce, state, certificates }) => `${state} with ${certificates} certificates: ${nonce}`),
  ];
}
