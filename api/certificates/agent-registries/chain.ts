import {
  BaseError,
  ContractFunctionRevertedError,
  concat,
  keccak256,
  type PublicClient,
  stringToHex,
  type TransactionReceipt,
} from "viem";
import { identityRegistryAbi, reputationRegistryAbi, validationRegistryAbi } from "../../../contracts/erc8004.ts";
import type { RegistryAddresses } from "./order.ts";
import type { Carried, Registries } from "./ports.ts";
import type { Publication } from "./publication.ts";
import type { Address, Hex } from "../../platform/wallet.ts";
import type { ChainReader } from "../../platform/chain/chain-reader.ts";
import { PATIENT_FEE } from "../../platform/relayer/fees.ts";
import type { Relayer } from "../../platform/relayer/relayer.ts";
import { discreet, isTransport } from "../../platform/chain/rpc-errors.ts";
import { type Shown, type Statement, type Step, statementOf } from "./statements.ts";

/** More than Base's registries use: the first feedback for an agent stores ten words, 240,000 gas. */
const STATEMENT_GAS = 400_000n;
const MINED_WITHIN_MS = 20_000;

export interface RegistryParts {
  readonly chain: Pick<ChainReader, "client" | "logs" | "standingNow">;
  readonly relayer: Relayer;
  readonly identity: Address;
}

/** The registries of ERC-8004 on one chain, written to by one account. */
export function createRegistries({ chain, relayer, identity }: RegistryParts): Registries {
  const { client } = chain;
  const publisher = relayer.address;
  const walletOf = async (agent: bigint, blockNumber?: bigint): Promise<Address> => {
    const at = blockNumber === undefined ? {} : { blockNumber };
    const call = { address: identity, abi: identityRegistryAbi, functionName: "getAgentWallet" } as const;
    return (await client.readContract({ ...call, args: [agent], ...at })).toLowerCase() as Address;
  };
  return {
    publisher,
    gas: STATEMENT_GAS,
    standing: chain.standingNow,
    walletAt: discreet((agent, block) => walletOf(agent, BigInt(block)).catch(() => walletOf(agent))),
    unfit: discreet(async (publication, wallet) => {
      if ((await walletOrNone(walletOf(publication.agent))) !== wallet) return "other_wallet";
      if (publication.request === null) return null;
      const asked = await askedBy(client, publication.contract, publication.request);
      return asked?.validator === publisher && asked.agent === publication.agent ? null : "other_validator";
    }),
    carry: discreet((publication, stated, step) => {
      const statement = statementOf(publication, stated, step);
      return carry({ chain, relayer }, { publication, statement, purpose: purposeOf(publication, step) });
    }),
  };
}

/** One for each attempt. */
const purposeOf = ({ certificate, registry, contract, attempt }: Publication, step: Step): Hex =>
  keccak256(concat([contract, stringToHex(`erc8004|${registry}|${certificate}|${step}|${attempt}`)]));

interface Sending {
  readonly publication: Publication;
  readonly statement: Statement;
  readonly purpose: Hex;
}

/** The chain's own events first: they outlive what we remember of our transactions. */
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

/** The statement's event since the order was paid. */
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

/** Another attempt before the block is final could end in two statements: a reorganization may revive the first. */
async function inVain(chain: RegistryParts["chain"], receipt: TransactionReceipt | null): Promise<Carried> {
  if (receipt === null) return { state: "pending" };
  const { blockNumber, blockHash } = receipt;
  const standing = await chain.standingNow({ block: Number(blockNumber), blockHash });
  return { state: standing === "final" ? "failed" : "pending" };
}

/** A registry may revert for an agent that it does not know. */
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

/** Throws unless the addresses are registries of the one of agents. */
export async function checkRegistries(
  client: PublicClient,
  { identity, reputation, validation }: RegistryAddresses & { readonly identity: Address },
): Promise<void> {
  const refused = (variable: string, address: Address) => (error: unknown) => {
    if (isTransport(error)) throw new Error(`BASE_RPC_URL is not responding: the registry ${address} cannot be read`);
    throw new Error(wrong(variable, address, "is no registry of ERC-8004"));
  };
  const agent = { address: identity, abi: identityRegistryAbi, functionName: "getAgentWallet" } as const;
  await client.readContract({ ...agent, args: [0n] }).catch((error: unknown) => {
    // It may refuse an agent that it does not know.
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
