import { type Address, type Hex, type LocalAccount, parseAbi, parseEventLogs } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { ERC8004, reputationRegistryAbi } from "../../../contracts/erc8004.ts";
import { LOCAL_VALIDATIONS } from "../../../scripts/embedded/agent-registries.ts";
import type { TestChain } from "../chain/chain.ts";
import { newPayer } from "../payments/signing.ts";
import { ARBITER_KEY } from "../service/accounts.ts";

/** Who publishes. */
export const PUBLISHER = privateKeyToAccount(ARBITER_KEY).address;

const IDENTITY = parseAbi([
  "function register() returns (uint256)",
  "function transferFrom(address from, address to, uint256 agentId)",
  "event Registered(uint256 indexed agentId, string agentURI, address indexed owner)",
]);
const READ = parseAbi([
  "function getLastIndex(uint256 agentId, address clientAddress) view returns (uint64)",
  "function readFeedback(uint256 agentId, address clientAddress, uint64 feedbackIndex) view returns (int128 value, uint8 valueDecimals, string tag1, string tag2, bool isRevoked)",
]);
const VALIDATION = parseAbi([
  "function validationRequest(address validatorAddress, uint256 agentId, string requestURI, bytes32 requestHash)",
  "function getValidationStatus(bytes32 requestHash) view returns (address, uint256, uint8 response, bytes32 responseHash, string tag, uint256)",
]);

export interface Agent {
  readonly id: bigint;
  readonly account: LocalAccount;
}

/** A new payer that is registered as an agent, with itself as the wallet. */
export async function newAgent(chain: TestChain, atomic?: bigint): Promise<Agent> {
  const account = await newPayer(chain, atomic);
  await chain.setBalance(account.address, 10n ** 18n);
  const call = { account, address: ERC8004.identity, abi: IDENTITY, functionName: "register" } as const;
  const hash = await chain.client.writeContract(call);
  const { logs } = await chain.client.waitForTransactionReceipt({ hash });
  const [registered] = parseEventLogs({ abi: IDENTITY, eventName: "Registered", logs });
  return { id: registered?.args.agentId ?? -1n, account };
}

/** The agent gets another owner, and loses its wallet; outbids what else is in the pool. */
export const sell = ({ client }: TestChain, { id, account }: Agent, to: Address): Promise<Hex> =>
  client.writeContract({
    account,
    address: ERC8004.identity,
    abi: IDENTITY,
    functionName: "transferFrom",
    args: [account.address, to, id],
    gas: 200_000n,
    maxFeePerGas: 10n ** 12n,
    maxPriorityFeePerGas: 10n ** 11n,
  });

/** The agent's owner asks a validator. */
export async function requestValidation(
  { client }: TestChain,
  { id, account }: Agent,
  { request, validator = PUBLISHER }: { readonly request: Hex; readonly validator?: Address },
): Promise<void> {
  const args = [validator, id, "https://agent.test/request", request] as const;
  const call = { account, address: LOCAL_VALIDATIONS, abi: VALIDATION, functionName: "validationRequest" } as const;
  await client.waitForTransactionReceipt({ hash: await client.writeContract({ ...call, args }) });
}

export async function validationOf({ client }: TestChain, request: Hex) {
  const call = { address: LOCAL_VALIDATIONS, abi: VALIDATION, functionName: "getValidationStatus" } as const;
  const [, , response, hash, tag] = await client.readContract({ ...call, args: [request] });
  return { response, hash, tag };
}

/** All that we have said of an agent, as the registry has it. */
export async function feedbackFor({ client }: TestChain, { id }: Pick<Agent, "id">) {
  const address = ERC8004.reputation;
  const last = await client.readContract({ address, abi: READ, functionName: "getLastIndex", args: [id, PUBLISHER] });
  const indices = Array.from({ length: Number(last) }, (_, at) => BigInt(at + 1));
  return Promise.all(
    indices.map(async (index) => {
      const args = [id, PUBLISHER, index] as const;
      const [value, , tag1, tag2, isRevoked] = await client.readContract({
        address,
        abi: READ,
        functionName: "readFeedback",
        args,
      });
      return { value, tag1, tag2, isRevoked };
    }),
  );
}

/** What the events name as the feedback's evidence. */
export async function evidenceFor({ client }: TestChain, { id }: Pick<Agent, "id">) {
  const logs = await client.getLogs({ address: ERC8004.reputation, fromBlock: 0n });
  return parseEventLogs({ abi: reputationRegistryAbi, eventName: "NewFeedback", logs })
    .filter(({ args }) => args.agentId === id)
    .map(({ args: { endpoint, feedbackURI, feedbackHash } }) => ({ endpoint, feedbackURI, feedbackHash }));
}
