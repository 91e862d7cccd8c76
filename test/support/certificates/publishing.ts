import type pg from "pg";
import { expect } from "vitest";
import { ERC8004 } from "../../../contracts/erc8004.ts";
import { LOCAL_VALIDATIONS } from "../../../scripts/embedded/agent-registries.ts";
import { startTestChain, type TestChain } from "../chain/chain.ts";
import { eventually } from "../eventually.ts";
import { type Answer, post, send, v2 } from "../payments/requests.ts";
import { signPayment } from "../payments/signing.ts";
import { eachPayment } from "../service/row-by-row.ts";
import { startService, type TestService } from "../service/service.ts";
import { ownerOf } from "../sessions/stage.ts";
import { type Agent, PUBLISHER } from "./agent-registries.ts";

/** What one publication is reckoned with. */
export const GAS = 400_000n;

/** The registries on the test's chain, and gas for a hundred publications a day. */
export const REGISTRIES = {
  identity: ERC8004.identity,
  reputation: ERC8004.reputation,
  validation: LOCAL_VALIDATIONS,
  gasPerDay: GAS * 100n,
};

/** A service that publishes to ERC-8004's registries, in passes and with time that the test makes. */
export interface PublishingStage {
  readonly chain: TestChain;
  readonly service: TestService;
  readonly owner: pg.Pool;
  /** A basic test with an order for the agent, or with the body that the test says. */
  readonly buy: (agent: Agent, body?: string, at?: string) => Promise<Answer>;
  /** One pass in which everything is due, and nothing waits because it is young. */
  readonly pass: (by?: Pick<TestService, "publish">) => Promise<void>;
  /** Passes, until the certificate's publications are like that. */
  readonly until: (answer: Answer, ...wanted: readonly (readonly [status: string, final: boolean])[]) => Promise<void>;
  /** Everything mined so far becomes final, and payments are known to be. */
  readonly finalize: () => Promise<void>;
  /** One pass over payments, whenever they are due. */
  readonly resolve: () => Promise<void>;
  readonly stop: () => Promise<void>;
}

export const order = (agent: Pick<Agent, "id">, more: object = {}): string =>
  JSON.stringify({ erc8004: { agentId: String(agent.id), ...more } });

export const recordOf = async (answer: Answer) => (await send(String(answer.body.cert_url))).body;

/** What a certificate's record says of its publications. */
export const published = async (answer: Answer) => (await recordOf(answer)).erc8004 as Record<string, unknown>[];

export async function startPublishing(): Promise<PublishingStage> {
  const chain = await startTestChain({ slotsInAnEpoch: 3 });
  await chain.setBalance(PUBLISHER, 10n ** 18n);
  // anvil knows the state of loaded blocks only at its head: let the finalized one be one that it has mined.
  await chain.mine(10);
  const service = await startService({ chain, jobs: false, config: { erc8004: REGISTRIES } });
  const owner = ownerOf(service.database);
  const pass: PublishingStage["pass"] = async ({ publish } = service) => {
    await owner.query(
      "UPDATE publication SET next_attempt_at = now(), ordered_at = ordered_at - interval '15 minutes'",
    );
    await publish();
  };
  const resolve = async () => {
    await owner.query(eachPayment("next_attempt_at = now()", "final_at IS NULL"));
    await service.gate.resolveDue();
  };
  return {
    chain,
    service,
    owner,
    pass,
    resolve,
    async buy(agent, body = order(agent), at = service.url) {
      const answer = await post(`${at}/test/basic`, v2(await signPayment(agent.account)), body);
      expect([answer.status, answer.text]).toEqual([200, expect.stringContaining("cert_url")]);
      return answer;
    },
    until: (answer, ...wanted) =>
      eventually(
        async () => {
          await pass();
          return (await published(answer)).map(({ status, final }) => [status, final]);
        },
        wanted.map((one) => [...one]),
      ),
    async finalize() {
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
