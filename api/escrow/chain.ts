import {
  decodeFunctionResult,
  encodeFunctionData,
  getAbiItem,
  type PublicClient,
  parseEventLogs,
  toEventSelector,
} from "viem";
import { escrowAbi } from "../../contracts/abi.ts";
import { reclaimedEvent } from "../../contracts/commerce-payments.ts";
import { paymentId } from "../../packages/escrow/src/payment-info.ts";
import { type EscrowContract, isAccountSignature } from "../payments/index.ts";
import { createBatcher, createRecent } from "../platform/chain/batcher.ts";
import type { ChainReader } from "../platform/chain/chain.ts";
import { type BlockRange, larger, type MinedLog, smaller } from "../platform/chain/logs.ts";
import { asReading } from "../platform/chain/nodes.ts";
import { createAllowance } from "../platform/chain/pace.ts";
import { type Call, readAtBlock } from "../platform/chain/read-at-block.ts";
import { discreet } from "../platform/chain/rpc.ts";
import { NETWORKS } from "../platform/networks.ts";
import type { Address, Hex } from "../platform/wallet.ts";
import type { EscrowIndex } from "./index-store.ts";
import {
  type Decision,
  ESCROW_NETWORK,
  type EscrowStatus,
  FEE_BPS,
  type Hold,
  type PaymentInfo,
  STATUSES,
  TIMEOUT_SECONDS,
} from "./payment.ts";

/** The end of a hold, and the block that shows it. */
export interface HoldEnd extends Block {
  readonly decision: Decision;
  readonly transaction: Hex;
}

export interface Block {
  readonly block: number;
  readonly blockHash: Hex;
}

/** A payment's state at the head, according to the contract. */
export interface HoldState {
  readonly status: EscrowStatus;
  /** The time from which anyone may refund it, in Unix seconds of the chain. */
  readonly refundableFrom: number;
  /** The head's time, in Unix seconds, and its number. */
  readonly time: number;
  readonly block: number;
}

/** Our own view of the escrow contracts. Every method rejects if the chain cannot be read. */
export interface EscrowChain {
  /** Searches the contracts' logs, newest first. Returns null if there is no such hold. */
  holdById(payment: Hex): Promise<Hold | null>;
  /** Returns every hold that a transaction made, in order. */
  holdsByTransaction(transaction: Hex): Promise<readonly Hold[]>;
  state(hold: { readonly contract: Address; readonly payment: Hex }): Promise<HoldState>;
  /** Returns whether an account, or a contract by ERC-1271, signed the digest. */
  isSigned(signer: Address, digest: Hex, signature: Hex): Promise<boolean>;
  /** Does the same at a block, or at the head if null. Rejects if the node does not have that block's state. */
  isSignedAt(
    block: number | null,
    signed: { readonly signer: Address; readonly digest: Hex; readonly signature: Hex },
  ): Promise<boolean>;
  /** Returns what released or refunded a payment, or null before that. */
  outcome(hold: { readonly contract: Address; readonly payment: Hex }): Promise<HoldEnd | null>;
  /** Returns the newest final block, according to two readings. */
  final(): Promise<number>;
  /** Returns the state of a block, which counts as final only after three readings. */
  blockState(block: Block): Promise<"pending" | "final" | "unknown">;
  /** Returns the head's time in Unix seconds. */
  time(): Promise<number>;
}

/** Concurrent callers share a call. */
const READS = { most: 100, underWay: 4, waitMs: 5 };

/** A payment in one contract. */
export interface HeldAt {
  readonly contract: Address;
  readonly payment: Hex;
}

const stateOf = ({ contract, payment }: HeldAt): Call<readonly [status: number, refundableFrom: number]> => ({
  target: contract,
  callData: encodeFunctionData({ abi: escrowAbi, functionName: "payments", args: [payment] }),
  decode: (data) => decodeFunctionResult({ abi: escrowAbi, functionName: "payments", data }),
});

/** Returns the states of payments in their contracts, all at one block, with one call. */
async function readStates(client: PublicClient, payments: readonly HeldAt[]): Promise<readonly HoldState[]> {
  const calls = payments.map(stateOf);
  const { number, time, of } = await readAtBlock(client, { calls });
  return calls.map((call) => {
    const [status, refundableFrom] = of(call);
    return { status: STATUSES[status] ?? "none", refundableFrom, time: Number(time), block: Number(number) };
  });
}

/** Creates a reader of one payment's state at the head. */
const createStates = (client: PublicClient): ((payment: HeldAt) => Promise<HoldState>) =>
  createBatcher((payments: readonly HeldAt[]) => readStates(client, payments), READS);

/** A release is possible for a day after the hold. The search covers a little more: 30 hours of blocks. */
const LOOKED_BACK = BigInt(Math.ceil(108_000 / NETWORKS[ESCROW_NETWORK].blockSeconds));
/** Repeated requests for one payment cost one search in this time, and a hold that was just mined is seen soon. */
const ASKED_AGAIN_MS = 500;
const CALLS_A_SEARCH = 4;
/** Concurrent searches for holds share a call. */
const READS_NEAR = { most: 50, underWay: 4, waitMs: 5 };

const HELD = getAbiItem({ abi: escrowAbi, name: "Held" });
const RELEASED = toEventSelector(getAbiItem({ abi: escrowAbi, name: "Released" }));
const REFUNDED = toEventSelector(getAbiItem({ abi: escrowAbi, name: "Refunded" }));
const RECLAIMED = toEventSelector(reclaimedEvent);

type HeldLog = ReturnType<typeof parseEventLogs<[typeof HELD]>>[number];
type Reader = Pick<ChainReader, "client" | "finality" | "logs" | "settlementState" | "verifyContractSignature">;

export interface EscrowChainParts {
  readonly chain: Reader;
  readonly contracts: readonly EscrowContract[];
  readonly index: Pick<EscrowIndex, "payment">;
}

/** Creates a reader of one network's escrow contracts over JSON-RPC. It checks the index first, which is free. */
export function createEscrowChain({ chain, contracts, index }: EscrowChainParts): EscrowChain {
  const { client } = chain;
  const stateOf = createStates(client);
  const near = createBatcher((asked: readonly Near[]) => readNear(chain, contracts, asked), READS_NEAR);
  const recent = createRecent<Hold | null>(ASKED_AGAIN_MS);
  const recentIn = createRecent<readonly Hold[]>(ASKED_AGAIN_MS);
  const isSignedAt: EscrowChain["isSignedAt"] = discreet(
    async (block, { signer, digest, signature }) =>
      isAccountSignature(signer, digest, signature) ||
      chain.verifyContractSignature({ payer: signer, digest, signature }, `merchant ${signer}`, { block }),
  );
  return {
    holdById: discreet((payment) =>
      recent(
        payment,
        async () =>
          (await indexed(index, contracts, payment)) ?? findHold({ ...chain, stateOf, near }, contracts, payment),
      ),
    ),
    holdsByTransaction: discreet((transaction) =>
      recentIn(transaction, async () => {
        const receipt = await client.getTransactionReceipt({ hash: transaction }).catch(() => null);
        return heldIn(receipt?.logs ?? [], contracts);
      }),
    ),
    state: discreet(stateOf),
    isSigned: (signer, digest, signature) => isSignedAt(null, { signer, digest, signature }),
    isSignedAt,
    outcome: discreet(async (hold) => {
      const custody = contracts.find(({ address }) => address === hold.contract)?.custody ?? hold.contract;
      const at = { ...hold, custody };
      return (await outcome(chain, at)) ?? asReading(1, () => outcome(chain, at));
    }),
    final: discreet(async () => Number((await chain.finality.confirmed())?.number ?? -1n)),
    blockState: chain.settlementState,
    time: discreet(async () => Number((await client.getBlock()).timestamp)),
  };
}

/** Returns the hold according to the index. Its terms must hash to its ID, so the index need not be trusted. */
async function indexed(
  index: EscrowChainParts["index"],
  contracts: readonly EscrowContract[],
  payment: Hex,
): Promise<Hold | null> {
  const found = await index.payment(payment);
  if (found === null || found === "absent") return null;
  const contract = contracts.find(({ address }) => address === found.contract);
  return contract === undefined || idIn(contract, found.info) !== payment ? null : found;
}

interface Finder extends Pick<Reader, "logs"> {
  readonly stateOf: ReturnType<typeof createStates>;
  readonly near: (asked: Near) => Promise<Hold | null>;
}

/** A payment that was held recently, and the blocks that show it. */
interface Near extends BlockRange {
  readonly payment: Hex;
}

const filterOf = (contracts: readonly EscrowContract[], payments: readonly Hex[]) => ({
  address: contracts.map(({ address }) => address),
  topics: [toEventSelector(HELD), payments],
});

/**
 * Returns the holds found with one call for all of the requested payments, and null for the others, which are then
 * searched for one by one.
 */
async function readNear(
  { logs }: Pick<Reader, "logs">,
  contracts: readonly EscrowContract[],
  asked: readonly Near[],
): Promise<readonly (Hold | null)[]> {
  const range = {
    from: asked.map(({ from }) => from).reduce(smaller),
    to: asked.map(({ to }) => to).reduce(larger),
  };
  const payments = asked.map(({ payment }) => payment);
  const allowance = createAllowance(CALLS_A_SEARCH);
  const page = await logs.page(filterOf(contracts, payments), range, { at: "end", allowance });
  const holds = new Map(heldIn(page?.logs ?? [], contracts).map((hold) => [hold.id, hold]));
  return payments.map((payment) => holds.get(payment) ?? null);
}

/**
 * One call shows whether any contract knows the requested payments. Only then are logs searched, around the block of
 * the hold.
 */
async function findHold(
  { stateOf, near, ...reader }: Finder,
  contracts: readonly EscrowContract[],
  payment: Hex,
): Promise<Hold | null> {
  if (contracts.length === 0) return null;
  const states = await Promise.all(contracts.map(({ address: contract }) => stateOf({ contract, payment })));
  const state = states.find(({ status }) => status !== "none");
  if (state === undefined) return null;
  const number = BigInt(state.block);
  const ageSeconds = state.time - (state.refundableFrom - TIMEOUT_SECONDS);
  const age = BigInt(Math.floor(ageSeconds / NETWORKS[ESCROW_NETWORK].blockSeconds));
  const oldest = number - larger(age, LOOKED_BACK);
  const begins = number - age - reader.logs.width() / 2n;
  const isNear = number - begins < reader.logs.width();
  const found = isNear ? await near({ payment, from: notNegative(begins), to: number }) : null;
  if (found !== null) return found;
  const filter = filterOf(contracts, [payment]);
  const allowance = createAllowance(CALLS_A_SEARCH);
  for (const [place, begin] of [begins, oldest].entries()) {
    for (let from = notNegative(begin); from <= number; ) {
      const range = { from, to: number };
      const page = await asReading(place + 1, () => reader.logs.page(filter, range, { at: "start", allowance }));
      if (page === null) throw new Error(`the hold of the payment ${payment} was not found among the logs`);
      const [hold] = heldIn(page.logs, contracts);
      if (hold !== undefined) return hold;
      from = page.read.to + 1n;
    }
  }
  throw new Error(`the node knows the payment ${payment} but not its log`);
}

const heldIn = (logs: readonly MinedLog[], contracts: readonly EscrowContract[]): readonly Hold[] =>
  parseEventLogs({ abi: [HELD], logs: [...logs] }).flatMap((log) => {
    const contract = contracts.find(({ address }) => address === log.address.toLowerCase());
    return contract === undefined ? [] : [holdOf(contract, log)];
  });

/**
 * Returns what ended a hold, searching the newest blocks first. After the capture deadline, a payer may reclaim the
 * money without the operator, which only the custody contract's logs show.
 */
async function outcome(
  { logs, client }: Reader,
  { contract, custody, payment }: HeldAt & Pick<EscrowContract, "custody">,
): Promise<HoldEnd | null> {
  const head = await client.getBlockNumber({ cacheTime: 0 });
  const from = notNegative(head - LOOKED_BACK);
  const allowance = createAllowance(Number.MAX_SAFE_INTEGER);
  for (let to = head; to >= from; ) {
    const page = await logs.page(
      { address: [contract, custody], topics: [[RELEASED, REFUNDED, RECLAIMED], payment] },
      { from, to },
      { at: "end", allowance },
    );
    const found = page?.logs.at(-1);
    if (page === null) return null;
    if (found !== undefined)
      return {
        decision: found.topics[0] === RELEASED ? "release" : "refund",
        transaction: found.transactionHash,
        block: Number(found.blockNumber),
        blockHash: found.blockHash,
      };
    to = page.read.from - 1n;
  }
  return null;
}

const notNegative = (block: bigint): bigint => larger(block, 0n);

/** Combines the event and the contract's roles into the full terms. */
function holdOf(contract: EscrowContract, { args, transactionHash, blockNumber }: HeldLog): Hold {
  const { network, address, usdc, feeRecipient } = contract;
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
  if (idIn(contract, info) !== id) throw new Error(`the terms of hold ${id} do not hash to its id`);
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

const idIn = ({ network, custody }: EscrowContract, info: PaymentInfo): Hex =>
  paymentId({ chainId: NETWORKS[network].chainId, escrow: custody }, info);
