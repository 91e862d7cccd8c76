import { BaseError, getAbiItem, type Log, type PublicClient, parseEventLogs } from "viem";
import { escrowAbi } from "../../../contracts/abi.ts";
import type { EscrowChain } from "../../escrow/escrow-ports.ts";
import { ESCROW_NETWORK, FEE_BPS, type Hold, paymentId, STATUSES } from "../../escrow/payment.ts";
import { NETWORKS } from "../../kernel/networks.ts";
import type { Address, Hex } from "../../kernel/wallet.ts";
import type { Chain } from "../../payments/chain.ts";
import type { EscrowContract } from "../../payments/commerce/escrow-contract.ts";
import { isAccountSignature } from "../../payments/signature.ts";
import { discreet } from "./rpc-errors.ts";

/** Providers reject wider `eth_getLogs` ranges. */
const LOG_RANGE = 9_000n;
/** A release is possible for a day after the hold; a little more is looked through: 30 hours of blocks. */
const LOOKED_BACK = BigInt(Math.ceil(108_000 / NETWORKS[ESCROW_NETWORK].blockSeconds));

const HELD = getAbiItem({ abi: escrowAbi, name: "Held" });
const RELEASED = getAbiItem({ abi: escrowAbi, name: "Released" });
const REFUNDED = getAbiItem({ abi: escrowAbi, name: "Refunded" });

type HeldLog = Log<bigint, number, false, typeof HELD, true>;

export interface EscrowChainParts {
  readonly client: PublicClient;
  readonly chain: Chain;
  readonly contracts: readonly EscrowContract[];
}

/** Reads one network's escrow contracts over JSON-RPC. */
export function createEscrowChain({ client, chain, contracts }: EscrowChainParts): EscrowChain {
  const addresses = contracts.map(({ address }) => address);
  const asHold = (log: HeldLog): Hold | null => {
    const contract = contracts.find(({ address }) => address === log.address.toLowerCase());
    return contract === undefined ? null : holdOf(contract, log);
  };
  return {
    holdById: discreet(async (payment) => {
      if (addresses.length === 0) return null;
      const found = await newestFirst(client, (range) =>
        client.getLogs({ address: addresses, event: HELD, args: { id: payment }, strict: true, ...range }),
      );
      return found === null ? null : asHold(found);
    }),
    holdByTransaction: discreet(async (transaction) => {
      const receipt = await client.getTransactionReceipt({ hash: transaction }).catch(() => null);
      const logs = receipt === null ? [] : parseEventLogs({ abi: [HELD], logs: receipt.logs });
      const [log] = logs.filter(({ address }) => addresses.includes(address.toLowerCase() as Address));
      return log === undefined ? null : asHold(log as HeldLog);
    }),
    status: discreet(async ({ contract, payment }, at) => {
      const [status] = await client.readContract({
        address: contract,
        abi: escrowAbi,
        functionName: "payments",
        args: [payment],
        blockTag: at,
      });
      return STATUSES[status] ?? "none";
    }),
    isSigned: discreet(
      async (signer, digest, signature) =>
        isAccountSignature(signer, digest, signature) || chain.verifyContractSignature(signer, digest, signature),
    ),
    outcome: discreet(async ({ contract, payment }) => {
      const found = await newestFirst(client, async (range) => {
        const common = { address: contract, args: { id: payment }, strict: true, ...range } as const;
        const [released, refunded] = await Promise.all([
          client.getLogs({ ...common, event: RELEASED }),
          client.getLogs({ ...common, event: REFUNDED }),
        ]);
        return [...released, ...refunded];
      });
      return found?.transactionHash ?? null;
    }),
    time: discreet(async () => Number((await chain.head()).time)),
  };
}

async function newestFirst<T>(
  client: PublicClient,
  read: (range: { fromBlock: bigint; toBlock: bigint }) => Promise<readonly T[]>,
): Promise<T | null> {
  const head = await client.getBlockNumber({ cacheTime: 0 });
  const oldest = head > LOOKED_BACK ? head - LOOKED_BACK : 0n;
  for (let toBlock = head; toBlock >= oldest; toBlock -= LOG_RANGE) {
    const fromBlock = toBlock - LOG_RANGE + 1n > oldest ? toBlock - LOG_RANGE + 1n : oldest;
    const found = (await read({ fromBlock, toBlock })).at(-1);
    if (found !== undefined) return found;
  }
  return null;
}

/** The event and the contract's roles together make up the full terms. */
function holdOf(
  { network, address, usdc, feeRecipient }: EscrowContract,
  { args, transactionHash, blockNumber }: HeldLog,
): Hold {
  const lower = (account: Address) => account.toLowerCase() as Address;
  const info = {
    operator: address,
    payer: lower(args.payer),
    receiver: lower(args.receiver),
    token: usdc,
    maxAmount: args.amount,
    preApprovalExpiry: args.preApprovalExpiry,
    authorizationExpiry: args.authorizationExpiry,
    refundExpiry: args.refundExpiry,
    minFeeBps: FEE_BPS,
    maxFeeBps: FEE_BPS,
    feeReceiver: feeRecipient,
    salt: args.salt,
  };
  const id: Hex = args.id;
  if (paymentId(info, NETWORKS[network].chainId, address) !== id)
    throw new Error(`the terms of hold ${id} do not hash to its id`);
  return {
    network,
    contract: address,
    id,
    info,
    transaction: transactionHash,
    block: Number(blockNumber),
    refundableFrom: args.refundableFrom,
  };
}

const ANSWERS = new Set([
  "ContractFunctionRevertedError",
  "ContractFunctionZeroDataError",
  "AbiDecodingDataSizeTooSmallError",
]);

/** Why the roles could not be read: it is some other contract, or the node did not answer. */
const unreadable = (address: Address, cause: unknown): string =>
  cause instanceof BaseError && cause.walk((error) => error instanceof Error && ANSWERS.has(error.name)) !== null
    ? `ESCROW_ADDRESSES is wrong: there is no escrow contract at ${address} on Base`
    : `BASE_RPC_URL is not responding: the escrow contract ${address} cannot be read`;

/** The contracts at these addresses, with their roles. Throws if an address is not one of our escrows. */
export async function readContracts(
  client: PublicClient,
  network: EscrowContract["network"],
  addresses: readonly Address[],
): Promise<readonly EscrowContract[]> {
  const read = async (address: Address): Promise<EscrowContract> => {
    const call = (functionName: "USDC" | "ARBITER" | "FEE_RECIPIENT") =>
      client.readContract({ address, abi: escrowAbi, functionName });
    const roles = Promise.all([call("USDC"), call("ARBITER"), call("FEE_RECIPIENT")]);
    const [usdc, arbiter, feeRecipient] = await roles.catch((cause: unknown) => {
      throw new Error(unreadable(address, cause), { cause });
    });
    const lower = (account: Address) => account.toLowerCase() as Address;
    if (lower(usdc) !== NETWORKS[network].usdc.address.toLowerCase())
      throw new Error(`ESCROW_ADDRESSES is wrong: ${address} is an escrow for ${usdc}, which is not USDC on Base`);
    return { network, address, usdc: lower(usdc), arbiter: lower(arbiter), feeRecipient: lower(feeRecipient) };
  };
  return Promise.all(addresses.map(read));
}
