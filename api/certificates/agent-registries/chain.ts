import {
  BaseError,
  ContractFunctionRevertedError,
  concat,
  encodeEventTopics,
  encodeFunctionData,
  keccak256,
  type Log,
  type PublicClient,
  parseEventLogs,
  stringToHex,
  type TransactionReceipt,
} from "viem";
import { identityRegistryAbi, reputationRegistryAbi, validationRegistryAbi } from "../../../contracts/erc8004.ts";
import type { ChainReader } from "../../platform/chain/chain.ts";
import type { LogFilter, MinedLog } from "../../platform/chain/logs.ts";
import { discreet, isTransport } from "../../platform/chain/rpc.ts";
import type { RegistryAddresses } from "../../platform/config/values.ts";
import { PATIENT_FEE } from "../../platform/relayer/fees.ts";
import type { Relayer } from "../../platform/relayer/relayer.ts";
import type { Address, Hex } from "../../platform/wallet.ts";
import type { Carried, Publication, Stated } from "./publication.ts";

/** The tag by which all of our statements can be found. */
const TAG = "x402-certificate";
/** The tag of answers whose certificate has been reversed. */
const REVERSED_TAG = "x402-certificate-reversed";
const NO_ENDPOINT = "";

type Step = "publish" | "withdraw";

/** A call to a registry, and the event that proves it on chain. */
interface Statement {
  readonly data: Hex;
  /** Returns the filter for the logs that may contain the event. */
  readonly filter: (publisher: Address) => LogFilter;
  /**
   * Returns the event found in the logs, with the index that the registry gives a feedback, or null if it is not there.
   */
  readonly read: (logs: readonly Log[]) => Shown | null;
}

interface Shown {
  readonly log: MinedLog;
  readonly publisher: Address;
  readonly index: bigint | null;
}

/** Returns the statement that publishes a certificate to a registry, or withdraws it. */
function statementOf(publication: Publication, stated: Stated, step: Step): Statement {
  const { registry, request } = publication;
  if (registry === "validation" && request !== null)
    return answer({ ...publication, request }, stated, step === "publish" ? TAG : REVERSED_TAG);
  return step === "publish" ? feedback(publication, stated) : revocation(publication);
}

const hashOf = ({ document }: Stated): Hex => keccak256(stringToHex(document));
const same = (one: Address, other: Address): boolean => one.toLowerCase() === other.toLowerCase();
const lower = (address: Address): Address => address.toLowerCase() as Address;

/** 1 for a PASS and 0 for a FAIL in that kind of test. */
function feedback({ agent, contract }: Publication, stated: Stated): Statement {
  const hash = hashOf(stated);
  const value = stated.isPass ? 1n : 0n;
  const args = [agent, value, 0, TAG, stated.product, NO_ENDPOINT, stated.url, hash] as const;
  return {
    data: encodeFunctionData({ abi: reputationRegistryAbi, functionName: "giveFeedback", args }),
    filter: (publisher) => ({
      address: contract,
      topics: encodeEventTopics({
        abi: reputationRegistryAbi,
        eventName: "NewFeedback",
        args: { agentId: agent, clientAddress: publisher },
      }),
    }),
    read(logs) {
      const found = parseEventLogs({ abi: reputationRegistryAbi, eventName: "NewFeedback", logs: [...logs] });
      const log = found.find(
        ({ address, args }) => same(address, contract) && args.agentId === agent && args.feedbackHash === hash,
      );
      return log === undefined
        ? null
        : { log, publisher: lower(log.args.clientAddress), index: log.args.feedbackIndex };
    },
  };
}

function revocation({ agent, contract, feedbackIndex }: Publication): Statement {
  if (feedbackIndex === null) throw new Error("a feedback without an index cannot be revoked");
  const args = [agent, feedbackIndex] as const;
  return {
    data: encodeFunctionData({ abi: reputationRegistryAbi, functionName: "revokeFeedback", args }),
    filter: (publisher) => ({
      address: contract,
      topics: encodeEventTopics({
        abi: reputationRegistryAbi,
        eventName: "FeedbackRevoked",
        args: { agentId: agent, clientAddress: publisher, feedbackIndex },
      }),
    }),
    read(logs) {
      const found = parseEventLogs({ abi: reputationRegistryAbi, eventName: "FeedbackRevoked", logs: [...logs] });
      const log = found.find(
        ({ address, args }) =>
          same(address, contract) && args.agentId === agent && args.feedbackIndex === feedbackIndex,
      );
      return log === undefined ? null : { log, publisher: lower(log.args.clientAddress), index: feedbackIndex };
    },
  };
}

/** 100 for a PASS; 0 for a FAIL and for a withdrawn statement. */
function answer(
  { agent, contract, request }: Publication & { readonly request: Hex },
  stated: Stated,
  tag: string,
): Statement {
  const hash = hashOf(stated);
  const response = stated.isPass && tag === TAG ? 100 : 0;
  const args = [request, response, stated.url, hash, tag] as const;
  return {
    data: encodeFunctionData({ abi: validationRegistryAbi, functionName: "validationResponse", args }),
    filter: (publisher) => ({
      address: contract,
      topics: encodeEventTopics({
        abi: validationRegistryAbi,
        eventName: "ValidationResponse",
        args: { validatorAddress: publisher, agentId: agent, requestHash: request },
      }),
    }),
    read(logs) {
      const found = parseEventLogs({ abi: validationRegistryAbi, eventName: "ValidationResponse", logs: [...logs] });
      const log = found.find(
        ({ address, args }) =>
          same(address, contract) && args.requestHash === request && args.responseHash === hash && args.tag === tag,
      );
      return log === undefined ? null : { log, publisher: lower(log.args.validatorAddress), index: null };
    },
  };
}

/** More than Base's registries use: the first feedback for an agent stores ten words, 240,000 gas. */
const STATEMENT_GAS = 400_000n;
const MINED_WITHIN_MS = 20_000;

interface RegistryParts {
  readonly chain: Pick<ChainReader, "client" | "logs" | "settlementStateNow">;
  readonly relayer: Relayer;
  readonly identity: Address;
}

export type Registries = ReturnType<typeof createRegistries>;

/**
 * Creates the ERC-8004 registries on one chain, written to by one account. Every method rejects if the chain cannot be
 * read.
 */
export function createRegistries({ chain, relayer, identity }: RegistryParts) {
  const { client } = chain;
  const publisher = relayer.address;
  const walletOf = async (agent: bigint, blockNumber?: bigint): Promise<Address> => {
    const at = blockNumber === undefined ? {} : { blockNumber };
    const call = { address: identity, abi: identityRegistryAbi, functionName: "getAgentWallet" } as const;
    return (await client.readContract({ ...call, args: [agent], ...at })).toLowerCase() as Address;
  };
  return {
    /** The account that gives feedback, and the validator that requests must name. */
    publisher,
    /** The most gas that one transaction may use. */
    gas: STATEMENT_GAS,
    /** Returns the state of a block, which counts as final only after three readings. */
    blockState: chain.settlementStateNow,
    /** Returns the agent's wallet as of a block, or the current one if the node no longer has that block's state. */
    walletAt: discreet((agent: bigint, block: number) => walletOf(agent, BigInt(block)).catch(() => walletOf(agent))),
    /** Returns why this may not be published about a wallet now, or null if it may. */
    unfit: discreet(async (publication: Pick<Publication, "agent" | "request" | "contract">, wallet: Address) => {
      if ((await walletOrNone(walletOf(publication.agent))) !== wallet) return "other_wallet";
      if (publication.request === null) return null;
      const asked = await askedBy(client, publication.contract, publication.request);
      return asked?.validator === publisher && asked.agent === publication.agent ? null : "other_validator";
    }),
    /**
     * Looks for the statement on the chain, sends it if it is missing, and waits a while for its block. Never sends
     * twice for the same attempt.
     */
    carry: discreet((publication: Publication, stated: Stated, step: Step) => {
      const statement = statementOf(publication, stated, step);
      return carry({ chain, relayer }, { publication, statement, purpose: purposeOf(publication, step) });
    }),
  };
}

/** One purpose per attempt. */
const purposeOf = ({ certificate, registry, contract, attempt }: Publication, step: Step): Hex =>
  keccak256(concat([contract, stringToHex(`erc8004|${registry}|${certificate}|${step}|${attempt}`)]));

interface Sending {
  readonly publication: Publication;
  readonly statement: Statement;
  readonly purpose: Hex;
}

/** Checks the chain's events first, because they outlive our record of our transactions. */
async function carry(
  { chain, relayer }: Pick<RegistryParts, "chain" | "relayer">,
  { publication, statement, purpose }: Sending,
): Promise<Carried> {
  const { contract } = publication;
  const before = await search(chain, statement, publication);
  if (before !== null) return minedIn(before);
  const reverted = await relayer.failed(purpose);
  if (reverted !== null) return inVain(chain, await receiptOf(chain.client, reverted));
  let hash: Hex;
  try {
    hash = await relayer.send({
      to: contract,
      data: statement.data,
      gas: STATEMENT_GAS,
      purpose,
      lane: "statement",
      mostFee: PATIENT_FEE,
    });
  } catch {
    return { state: (await relayer.isSent(purpose)) ? "pending" : "unsent" };
  }
  const receipt = await relayer.waitFor(hash, MINED_WITHIN_MS).catch(() => null);
  const shown = receipt === null ? null : statement.read(receipt.logs);
  return shown === null ? inVain(chain, receipt) : minedIn(shown);
}

/** Searches for the statement's event since the order was paid. */
async function search(
  { client, logs }: RegistryParts["chain"],
  statement: Statement,
  { publisher, fromBlock }: Publication,
): Promise<Shown | null> {
  if (publisher === null) return null;
  const range = { from: BigInt(fromBlock), to: await client.getBlockNumber({ cacheTime: 0 }) };
  for await (const page of logs.pages(statement.filter(publisher), range)) {
    const shown = statement.read(page.logs);
    if (shown !== null) return shown;
  }
  return null;
}

const receiptOf = (client: PublicClient, hash: Hex): Promise<TransactionReceipt | null> =>
  client.getTransactionReceipt({ hash }).catch(() => null);

const minedIn = ({ log, publisher, index }: Shown): Carried => {
  const { transactionHash: transaction, blockNumber, blockHash } = log;
  return { state: "mined", place: { transaction, block: Number(blockNumber), blockHash }, publisher, index };
};

/**
 * A new attempt before the block is final could publish two statements, because a reorganization may revive the first.
 */
async function inVain(chain: RegistryParts["chain"], receipt: TransactionReceipt | null): Promise<Carried> {
  if (receipt === null) return { state: "pending" };
  const { blockNumber, blockHash } = receipt;
  const state = await chain.settlementStateNow({ block: Number(blockNumber), blockHash });
  return { state: state === "final" ? "failed" : "pending" };
}

/** A registry may revert for an unknown agent. */
const walletOrNone = (reading: Promise<Address>): Promise<Address | null> => reading.catch(nullIfReverted);

async function askedBy(client: PublicClient, address: Address, request: Hex) {
  const call = { address, abi: validationRegistryAbi, functionName: "getValidationStatus" } as const;
  const found = await client.readContract({ ...call, args: [request] }).catch(nullIfReverted);
  return found && { validator: found[0].toLowerCase() as Address, agent: found[1] };
}

function nullIfReverted(error: unknown): null {
  if (isReverted(error)) return null;
  throw error;
}

const isReverted = (error: unknown): boolean =>
  error instanceof BaseError && error.walk((cause) => cause instanceof ContractFunctionRevertedError) !== null;

/** Throws unless the addresses belong to ERC-8004 registries that use the identity registry. */
export async function checkRegistries(
  client: PublicClient,
  { identity, reputation, validation }: RegistryAddresses & { readonly identity: Address },
): Promise<void> {
  const refused = (variable: string, address: Address) => (error: unknown) => {
    if (isTransport(error)) throw new Error(`BASE_RPC_URL is not responding: the registry ${address} cannot be read`);
    throw new Error(wrong(variable, address, "is not an ERC-8004 registry"));
  };
  const agent = { address: identity, abi: identityRegistryAbi, functionName: "getAgentWallet" } as const;
  await client.readContract({ ...agent, args: [0n] }).catch((error: unknown) => {
    // The registry may reject an unknown agent.
    if (!isReverted(error)) refused("ERC8004_IDENTITY", identity)(error);
  });
  const others = [
    ["ERC8004_REPUTATION", reputation, reputationRegistryAbi],
    ["ERC8004_VALIDATION", validation, validationRegistryAbi],
  ] as const;
  for (const [variable, address, abi] of others) {
    if (address === null) continue;
    const call = { address, abi: abi as typeof reputationRegistryAbi, functionName: "getIdentityRegistry" } as const;
    const found = await client.readContract(call).catch(refused(variable, address));
    if (found.toLowerCase() !== identity.toLowerCase())
      throw new Error(wrong(variable, address, `belongs to the identity registry ${found}, not to ${identity}`));
  }
}

const wrong = (variable: string, address: Address, because: string): string =>
  `${variable} is wrong: ${address} on Base ${because}`;
