import { parseAbiItem } from "viem";
import type { Ledger } from "../../../packages/seller-check/src/exam/ledger.ts";
import type { Address, Hex } from "../../kernel/wallet.ts";
import { EXAM_ASSET } from "../../seller-exam/products.ts";
import type { ChainSettlement } from "../../seller-exam/record.ts";
import type { ChainReader } from "./chain-reader.ts";

const USED = parseAbiItem("event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)");

interface Parts {
  readonly client: ChainReader["client"];
  readonly ledger: Ledger;
  readonly payer: Address;
}

/** Reads what authorizations have moved after a block, in the order of their blocks. */
export const readSettlements =
  ({ client, ledger, payer }: Parts) =>
  async (given: { readonly nonces: readonly Hex[]; readonly since: bigint }): Promise<readonly ChainSettlement[]> => {
    const { nonces, since } = given;
    const args = { authorizer: payer, nonce: [...nonces] };
    const logs = await client.getLogs({ address: EXAM_ASSET, event: USED, args, fromBlock: since });
    const found = logs.flatMap(({ blockNumber, args: { nonce } }) =>
      blockNumber > since && nonce !== undefined ? [{ block: Number(blockNumber), nonce }] : [],
    );
    const read = found.map(async ({ block, nonce }): Promise<ChainSettlement | null> => {
      const settled = await ledger.settlement({ asset: EXAM_ASSET, from: payer, nonce, since });
      if (settled === null) return null;
      const { transaction, to, value } = settled;
      return { nonce, transaction, block, from: payer, to: to.toLowerCase() as Address, value };
    });
    return (await Promise.all(read)).filter((one) => one !== null);
  };

/** What has left the account. */
export const takenBy = (settlements: readonly ChainSettlement[]): bigint =>
  settlements.reduce((sum, { from, to, value }) => sum + (from === to ? 0n : value), 0n);
