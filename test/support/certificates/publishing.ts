import { type Address, type Hex, type LocalAccount, parseAbi, parseEventLogs } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { expect } from "vitest";
import { ERC8004, reputationRegistryAbi } from "../../../contracts/erc8004.ts";
import { LOCAL_VALIDATIONS } from "../../../scripts/embedded/install-contracts.ts";
import { startTestChain, type TestChain } from "../chain/chain.ts";
import { eventually } from "../eventually.ts";
import { type Answer, post, send, v2 } from "../payments/requests.ts";
import { newPayer, signPayment } from "../payments/signing.ts";
import { eachPayment } from "../service/database.ts";
import { ARBITER_KEY } from "../service/environment.ts";
import { startService, type TestService } from "../service/service.ts";
import { ownerOf } from "../sessions/stage.ts";

/** The publishing account. */
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

interface Agent {
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

/** Transfers the agent to another owner, which removes its wallet. Outbids every other transaction in the pool. */
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

/** Requests a validation as the agent's owner. */
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

/** All our feedback on an agent in the registry. */
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

/** The feedback's evidence in the events. */
export async function evidenceFor({ client }: TestChain, { id }: Pick<Agent, "id">) {
  const logs = await client.getLogs({ address: ERC8004.reputation, fromBlock: 0n });
  return parseEventLogs({ abi: reputationRegistryAbi, eventName: "NewFeedback", logs })
    .filter(({ args }) => args.agentId === id)
    .map(({ args: { endpoint, feedbackURI, feedbackHash } }) => ({ endpoint, feedbackURI, feedbackHash }));
}

/** The gas budget of one publication. */
export const GAS = 400_000n;

/** The registries on the test's chain, with gas for 100 publications a day. */
export const REGISTRIES = {
  identity: ERC8004.identity,
  reputation: ERC8004.reputation,
  validation: LOCAL_VALIDATIONS,
  gasPerDay: GAS * 100n,
};

export const order = (agent: Pick<Agent, "id">, more: object = {}): string =>
  JSON.stringify({ erc8004: { agentId: String(agent.id), ...more } });

export const recordOf = async (answer: Answer) => (await send(String(answer.body.cert_url))).body;

/** The publications in a certificate's record. */
export const published = async (answer: Answer) => (await recordOf(answer)).erc8004 as Record<string, unknown>[];

/** A service that publishes to ERC-8004's registries, with passes and time controlled by the test. */
export async function startPublishing() {
  const chain = await startTestChain({ slotsInAnEpoch: 3 });
  await chain.setBalance(PUBLISHER, 10n ** 18n);
  // anvil has states of loaded blocks only at the head, so the finalized block must be one that it mined.
  await chain.mine(10);
  const service = await startService({ chain, jobs: false, config: { erc8004: REGISTRIES } });
  const owner = ownerOf(service.database);
  /** Runs one pass in which everything is due and old enough. */
  const pass = async ({ publish }: Pick<TestService, "publish"> = service): Promise<void> => {
    await owner.query(
      "UPDATE publication SET next_attempt_at = now(), ordered_at = ordered_at - interval '15 minutes'",
    );
    await publish();
  };
  /** Runs one pass over all payments as if they were due. */
  const resolve = async (): Promise<void> => {
    await owner.query(eachPayment("next_attempt_at = now()", "final_at IS NULL"));
    await service.gate.resolveDue();
  };
  return {
    chain,
    service,
    owner,
    pass,
    resolve,
    /** Buys a basic test with an order for the agent, or with the given body. */
    async buy(agent: Agent, body = order(agent), at = service.url): Promise<Answer> {
      const answer = await post(`${at}/test/basic`, v2(await signPayment(agent.account)), body);
      expect([answer.status, answer.text]).toEqual([200, expect.stringContaining("cert_url")]);
      return answer;
    },
    /** Runs passes until the certificate's publications have these states. */
    until: (answer: Answer, ...wanted: readonly (readonly [status: string, final: boolean])[]): Promise<void> =>
      eventually(
        async () => {
          await pass();
          return (await published(answer)).map(({ status, final }) => [status, final]);
        },
        wanted.map((one) => [...one]),
      ),
    /** Makes everything mined final, and waits until the service knows that its payments are. */
    async finalize(): Promise<void> {
      await chain.finalize();
      await eventually(async () => {
        await resolve();
        const open = "SELECT FROM payment WHERE final_at IS NULL AND state = 'fulfilled' AND reason IS NULL";
        return (await owner.query(open)).rowCount;
      }, 0);
    },
    async stop() {
      await owner.end();
      await service.stop();
      await chain.stop();
    },
  };
}
