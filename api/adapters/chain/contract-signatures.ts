import { type PublicClient, parseAbi } from "viem";
import type { Asker } from "../../kernel/client.ts";
import type { Address } from "../../kernel/wallet.ts";
import type { PayerSignature } from "../../payments/chain.ts";
import { paced } from "./paced.ts";
import { createRecent } from "./recent.ts";
import { isTransport } from "./rpc-errors.ts";
import { isSignedByWrapped } from "./wrapped-signature.ts";

export const ERC1271 = parseAbi(["function isValidSignature(bytes32 hash, bytes signature) view returns (bytes4)"]);
export const ERC1271_MAGIC = "0x1626ba7e";
/** Wrong signatures of one payer cost one look at its code in this time. */
const CODE_CACHE_MS = 60_000;
/** What strangers can have asked with signatures that cost them nothing: so many calls at once, in one batch. */
const STRANGERS = { most: 20, everyMs: 100, mostWaiting: 1_000 };

export interface ContractSignatures {
  /** By ERC-1271; false for an account without code. */
  readonly verifyContractSignature: (signed: PayerSignature, asker: Asker) => Promise<boolean>;
  /** By ERC-6492: of a wallet that may have no code yet. */
  readonly verifyWrappedSignature: (signed: PayerSignature, asker: Asker) => Promise<boolean>;
}

/**
 * Verifies signatures that only a contract knows. Anybody can send any number of signatures that nobody has made, of ever
 * new accounts or of one, so clients take turns for whatever asks the chain.
 */
export function createContractSignatures(client: PublicClient): ContractSignatures {
  const coded = createRecent<boolean>(CODE_CACHE_MS);
  const turn = paced(async (turns: readonly null[]) => turns, STRANGERS);
  const isContract = async (payer: Address, asker: Asker): Promise<boolean> => {
    const known = coded.known(payer);
    if (known !== null) return known;
    // Nobody waits for another one's turn, which may never come.
    await turn(null, asker);
    return coded(payer, () => hasCode(client, payer));
  };
  return {
    async verifyContractSignature(signed, asker) {
      if (!(await isContract(signed.payer, asker))) return false;
      await turn(null, asker);
      return isAccepted(client, signed);
    },
    async verifyWrappedSignature(signed, asker) {
      await turn(null, asker);
      return isSignedByWrapped(client, signed);
    },
  };
}

async function hasCode(client: PublicClient, address: Address): Promise<boolean> {
  const code = await client.getCode({ address });
  return code !== undefined && code !== "0x";
}

/** ERC-1271. */
async function isAccepted(client: PublicClient, { payer, digest, signature }: PayerSignature): Promise<boolean> {
  try {
    const answer = await client.readContract({
      address: payer,
      abi: ERC1271,
      functionName: "isValidSignature",
      args: [digest, signature],
    });
    return answer === ERC1271_MAGIC;
  } catch (error) {
    if (isTransport(error)) throw error;
    return false;
  }
}
